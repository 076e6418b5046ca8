"""Advice that would change production says so, whoever wrote the command."""

import pytest

from opsleuth.console.report_headline import describe_recommendation
from opsleuth.state.production_changes import find_production_change

CHANGES = (
    "CREATE INDEX CONCURRENTLY ON orders (lower(customer_email), status);",
    "ALTER SYSTEM SET max_connections = 400",
    "drop index orders_customer",
    "select pg_terminate_backend(4711)",
    "kubectl rollout undo deployment/orders-api",
    "kubectl -n store rollout undo deployment cart",
    "kubectl --context east -n store scale deployment/cart --replicas=4",
    "kubectl delete pod cart-1",
    "helm rollback cart 3",
    "helm -n store upgrade cart ./chart",
    "argocd app rollback cart 7",
    "systemctl restart payments",
    "docker restart payments",
    "terraform apply",
)
LOOKS = (
    "kubectl get pods",
    "kubectl -n store describe deployment/delete-worker",
    "kubectl rollout status deployment/orders-api",
    "kubectl rollout history deployment/orders-api",
    "kubectl apply --dry-run=server -f x.yaml",
    "helm history cart",
    "SELECT * FROM pg_stat_activity",
    "EXPLAIN ANALYZE SELECT 1",
    "systemctl status payments",
    "docker logs payments",
    "opsleuth report inv-20261129-7k3f --full",
)


@pytest.mark.parametrize("command", CHANGES)
def test_a_command_that_changes_something_says_so(command: str) -> None:
    row = {"text": f"Then do this: `{command}`", "risk": "read"}
    assert describe_recommendation(row, {}) == f"Then do this: `{command}` (changes production)"
    assert describe_recommendation({**row, "risk": "high"}, {}).count("changes production") == 1


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_that_only_looks_says_nothing(command: str) -> None:
    assert find_production_change(f"See it: `{command}`") == ""


def test_a_sentence_about_a_change_is_no_command() -> None:
    assert (
        find_production_change("Somebody ran kubectl delete there, or ALTER TABLE: look at the audit log.")
        == ""
    )
