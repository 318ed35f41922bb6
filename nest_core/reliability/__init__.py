"""What failures leave of a plan: rates, parts in use, saves, effective share, simulation.

Formulae and sources: ``docs/method.md``, "Failures and goodput". A module is imported by itself, so
that who builds all loops need not read price lists.
"""
