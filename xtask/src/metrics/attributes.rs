//! What the attributes of an item say of it.

use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta};

/// The attributes of an item.
pub fn of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether it is a `cfg` that is true in tests only.
pub fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, syn::Token![,]>::parse_terminated);
            let parts = parts.unwrap_or_default();
            (list.path.is_ident("all") && parts.iter().any(needs_test))
                || (list.path.is_ident("any") && parts.iter().all(needs_test))
        }
        Meta::NameValue(_) => false,
    }
}

/// The file that `#[path = "..."]` names.
pub fn path(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else {
        return None;
    };
    pair.path.is_ident("path").then(|| text.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_only_tests_meet_are_known() {
        let of = |condition: &str| {
            let item: Item = syn::parse_str(&format!("#[cfg({condition})] fn f() {{}}")).unwrap();
            super::of(&item).iter().any(is_for_tests)
        };
        let tests = ["test", "doctest", "all(unix, test)", "any(test, doctest)"];
        assert!(tests.into_iter().all(of));
        let product = ["unix", "not(test)", "any(test, unix)", "feature = \"test\""];
        assert!(!product.into_iter().any(of));
    }
}
