"""Mistakes in what `Runtime.journal` selects, deletes and reports."""

from tests.teeth.mutations.mutation import Mutation

ADMIN, RETENTION = "actors/hosting/journal_admin.py", "actors/hosting/retention.py"
TESTS = "tests/test_journal_admin.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "journal: a deletion without a condition deletes everything",
        f"{ADMIN}:JournalAdmin.delete",
        "not ids and tenant is None and older_than is None",
        "not ids and tenant is None and older_than is None and not dry_run and False",
        (f"{TESTS}::test_a_deletion_without_a_condition_is_refused_and_deletes_nothing",),
    ),
    Mutation(
        "journal: a session that is named is deleted whatever its tenant",
        f"{RETENTION}:_matching",
        "tenant in (None, entry.tenant)",
        "tenant != entry.id",
        (f"{TESTS}::test_a_session_is_deleted_if_it_meets_every_condition",),
    ),
    Mutation(
        "journal: a session that is named is deleted whatever its age",
        f"{RETENTION}:_matching",
        "before is None or entry.used < before",
        "before is None or entry.used > 0",
        (f"{TESTS}::test_a_session_is_deleted_if_it_meets_every_condition",),
    ),
    Mutation(
        "journal: a dry run deletes",
        f"{ADMIN}:JournalAdmin.delete",
        "if dry_run: ...",
        "",
        (f"{TESTS}::test_a_dry_run_names_the_sessions_with_their_subagents_and_deletes_nothing",),
    ),
    Mutation(
        "journal: a session goes on after an event that was refused once somebody looks it up",
        "actors/journal.py:JournalActor._answered",
        "isinstance(command, FindSession)",
        "isinstance(command, FindSession) and command.session == ''",
        (f"{TESTS}::test_looking_up_a_session_does_not_let_it_go_on_after_an_event_that_was_refused",),
    ),
)
