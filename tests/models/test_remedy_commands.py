"""Commands in the advice are those that a person would type, and none where the data does not say."""

import pytest

from opsleuth.models.remedy_commands import (
    build_index_statement,
    build_rollout_undo,
    find_previous_version,
)


@pytest.mark.parametrize(
    ("statement", "command"),
    [
        (
            "SELECT id FROM orders WHERE lower(customer_email) = lower($1) AND status = $2 ORDER BY created_at LIMIT $3",
            "CREATE INDEX CONCURRENTLY ON orders (lower(customer_email), status);",
        ),
        (
            "select * from shop.carts c where c.user_id = ? and c.expires > ?",
            "CREATE INDEX CONCURRENTLY ON shop.carts (user_id);",
        ),
        ("SELECT * FROM a JOIN b ON a.id = b.id WHERE a.x = $1", None),
        ("SELECT * FROM a WHERE x = $1 OR y = $2", None),
        ("SELECT count(*) FROM events", None),
        ("UPDATE stock SET n = n - 1", None),
        ("", None),
    ],
)
def test_an_index_for_a_look_up_by_equality(statement: str, command: str | None) -> None:
    assert build_index_statement(statement) == command


def test_the_version_before_is_read_from_the_summary_or_the_deploy_before() -> None:
    change = {"service": "cart", "at": "2026-05-12T09:00:00Z", "summary": "cart 2.0.0 (from 1.9.3): faster"}
    listed = [
        {"service": "cart", "kind": "deploy", "version": "1.8", "time": "2026-05-10T09:00:00Z"},
        {"service": "cart", "kind": "deploy", "version": "1.9", "time": "2026-05-11T09:00:00Z"},
        {"service": "web", "kind": "deploy", "version": "7", "time": "2026-05-11T10:00:00Z"},
        {"service": "cart", "kind": "deploy", "version": "2.0", "time": "2026-05-12T09:00:00Z"},
    ]
    assert find_previous_version(change, listed) == "1.9.3"
    assert find_previous_version({**change, "summary": "moved from a to b"}, listed) == "1.9"
    assert find_previous_version({**change, "summary": ""}, []) is None


def test_a_rollout_is_undone_only_under_a_name_that_a_deployment_can_have() -> None:
    assert build_rollout_undo("orders-api") == "kubectl rollout undo deployment/orders-api"
    assert build_rollout_undo("pay_AWS::Lambda::Function") is None
    assert build_rollout_undo("x; rm -rf /") is None
