"""What the spool must keep when the power is cut at any instant."""

from spool import Spool
from steadfast_powercut import mark


def one_job_waits():
    """What is there before the power is cut."""
    Spool("spool").put("mail anna")


def puts_a_job_and_does_the_other():
    """The program under test. It marks what a caller has been told."""
    spool = Spool("spool")
    spool.put("print page")
    mark("accepted 2")
    spool.done(1)
    mark("done 1")


def accepted_jobs_wait(told):
    """The judge: it runs in the folder as the next boot finds it."""
    jobs = Spool("spool").jobs()
    if "accepted 2" in told:
        assert jobs.get(2) == "print page", "job 2 was accepted and is lost"
    else:
        assert jobs.get(1) == "mail anna", "job 1 was accepted and is lost"
    if "done 1" in told:
        assert 1 not in jobs, "job 1 is done and waits again"


def test_jobs_survive(power_cut):
    report = power_cut(
        puts_a_job_and_does_the_other,
        accepted_jobs_wait,
        setup=one_job_waits,
        options=["--linger", "0.2", "--record", "spool.crash", "--sarif", "spool.sarif"],
    )
    # Of a program that has failed at once there is nothing to lose.
    assert "the program ended with status 0" in report
