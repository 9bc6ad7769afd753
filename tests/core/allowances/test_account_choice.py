"""Which of several accounts serves a request: a table."""

from __future__ import annotations

from samples import rows

from proxy.core.allowances.accounts import Standing, for_account, in_order, is_name

NEW, HALF, MOST = Standing("new"), Standing("half", used=50), Standing("most", used=99)
SPENT, LATER = Standing("spent", used=100, opens=60), Standing("later", used=100, opens=600)
LACKS = Standing("lacks", lacks=True)
OUT, FAILED = Standing("out", signed_in=False), Standing("failed", failed=True)


@rows(
    "accounts, wishes, expected",
    [
        # most is left: nothing known is untouched, ties by name
        ((MOST, HALF, NEW), {}, ["new"]),
        ((Standing("b"), Standing("a")), {}, ["a"]),
        ((Standing("b", used=7), Standing("a", used=7)), {}, ["a"]),
        # not fit: spent, refused, signed out
        ((SPENT, MOST), {}, ["most"]),
        ((FAILED, MOST), {}, ["most"]),
        ((OUT, MOST), {}, ["most"]),
        # nobody is fit: the one that begins again first, then one that was refused, then one that is not there
        ((LATER, SPENT), {}, ["spent"]),
        ((FAILED, LATER), {}, ["later"]),
        ((OUT, FAILED), {}, ["failed"]),
        ((OUT,), {}, ["out"]),
        # a session stays, whatever others have left
        ((MOST, NEW), {"stays": "most"}, ["most"]),
        ((SPENT, NEW), {"stays": "spent"}, ["spent"]),
        ((FAILED, NEW), {"stays": "failed"}, ["failed"]),
        ((OUT, NEW), {"stays": "out"}, ["new"]),
        ((NEW,), {"stays": "gone"}, ["new"]),
        # a model is asked of an account whose service lists it; of another only if there is none
        ((LACKS, MOST), {}, ["most"]),
        ((LACKS, MOST), {"stays": "lacks"}, ["most"]),
        ((LACKS, SPENT), {"stays": "lacks"}, ["lacks"]),
        ((LACKS, MOST), {"onward": True}, ["most", "lacks"]),
        # where it may go on, others stand behind, and what is spent is passed over
        ((MOST, HALF, NEW), {"onward": True}, ["new", "half", "most"]),
        ((MOST, HALF, NEW), {"stays": "most", "onward": True}, ["most", "new", "half"]),
        ((SPENT, HALF, NEW), {"stays": "spent", "onward": True}, ["new", "half"]),
        ((FAILED, NEW), {"stays": "failed", "onward": True}, ["new"]),
        ((SPENT, LATER), {"stays": "later", "onward": True}, ["later"]),
        # a caller with an account of its own gets no other, whatever is said besides
        ((SPENT, NEW), {"bound": "spent", "onward": True, "stays": "new"}, ["spent"]),
        ((NEW,), {"bound": "gone"}, ["gone"]),
    ],
)
def test_who_serves(accounts: tuple[Standing, ...], wishes: dict[str, object], expected: list[str]) -> None:
    assert list(in_order(accounts, **wishes)) == expected  # type: ignore[arg-type]
    assert list(in_order(accounts[::-1], **wishes)) == expected  # type: ignore[arg-type]


@rows("name", ["", ".", "..", "a/b", "a\\b", "Work", "-x", "_x", "a b", "é", "a\n", "x" * 33])
def test_what_is_no_name(name: str) -> None:
    assert not is_name(name)


@rows("name", ["work", "2", "a-b_c", "x" * 32, "default"])
def test_what_is_a_name(name: str) -> None:
    assert is_name(name)


def test_a_command_is_that_of_the_account() -> None:
    told = "run `model-proxy auth login p1` (or `python -m proxy auth login p1`); p12 is auth login p12"
    assert for_account(told, "p1", "default") == told
    assert for_account(told, "p1", "work").count("auth login p1 --as work") == 2
    assert "auth login p12" in for_account(told, "p1", "work")
