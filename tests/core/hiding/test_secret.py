"""Secrets in the texts of others."""

from __future__ import annotations

import time

from proxy.core.hiding.secret import BLANK, Secret, blanked


def test_a_secret_of_any_length_is_found_without_holding_the_loop() -> None:
    token, other = Secret("a1-b" * 60_000), Secret("a1-b" * 3)
    begun = time.thread_time()
    assert blanked(f"{token.reveal()} and {other.reveal()}.") == f"{BLANK} and {BLANK}."
    assert time.thread_time() - begun < 0.2
