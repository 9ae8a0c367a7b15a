//! What another program says of a recovered image, and that it said nothing.

/// Another program's word on an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opinion {
    /// Nothing is wrong with it.
    Clean,
    /// What is wrong with it, in that program's words.
    Damaged(String),
    /// It could not be asked: no room for the image, not started, not ended. This says nothing of
    /// the image, and must never count as damage.
    NotGiven(String),
}

impl Opinion {
    /// What is wrong with the image, where that was said.
    pub fn damage(&self) -> Option<&str> {
        match self {
            Opinion::Damaged(what) => Some(what),
            Opinion::Clean | Opinion::NotGiven(_) => None,
        }
    }

    /// Why it was not given.
    pub fn missing(&self) -> Option<&str> {
        match self {
            Opinion::NotGiven(why) => Some(why),
            Opinion::Clean | Opinion::Damaged(_) => None,
        }
    }

    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        self.missing().is_none()
    }
}
