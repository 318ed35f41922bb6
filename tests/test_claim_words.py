"""Claims are strings that keep their facts, through pickles and joins."""

from __future__ import annotations

import copy
import pickle

from nest_core.documents.claims import Claim, Fact, joined


def test_a_claim_is_its_words_and_keeps_its_facts():
    fact = Fact("less", ("2:1", "4:1"), "days", 0.02)
    claim = Claim("2:1 is faster", fact)
    assert claim == "2:1 is faster"
    for again in (pickle.loads(pickle.dumps(claim)), copy.deepcopy(claim)):
        assert (str(again), again.facts) == ("2:1 is faster", (fact,))
    both = joined([claim, "and plain.", Claim("More.", Fact("ties", ("a", "b")))])
    assert both == "2:1 is faster and plain. More."
    assert [one.relation for one in both.facts] == ["less", "ties"]
