"""The budget of a team and day: counted at each call to a model, asked before the next one.

Runs at work at the same moment do not wait for each other: a budget may be exceeded by at most one call of each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.notices import OutgoingNotice
from opsleuth.checkpoints.service.spending import DaySpending
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import ServiceSettings, TeamBudget, WebhookSettings
from opsleuth.nodes.allowance import SpendingRefusal
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.near_limits import is_near
from opsleuth.state.run_status import StopReason


def find_budget_refusal(spent: DaySpending, budget: TeamBudget, team: str) -> SpendingRefusal | None:
    """Why the team may spend nothing more today; None where it may."""
    again = "it is renewed at midnight UTC, and an operator raises it in [service.budget]"
    if budget.cost is not None and spent.cost >= budget.cost:
        text = f"the budget of team {team} for {spent.day} is used up: ${spent.cost:.2f} of ${budget.cost:.2f}; {again}"
        return SpendingRefusal(StopReason.COST_LIMIT, text)
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        text = f"the tokens of team {team} for {spent.day} are used up: {spent.tokens} of {budget.tokens}; {again}"
        return SpendingRefusal(StopReason.TOKEN_LIMIT, text)
    return None


def describe_near_budget(spent: DaySpending, budget: TeamBudget, team: str) -> str | None:
    """How much of a nearly used budget is spent; None while there is enough."""
    if budget.cost is not None and is_near(spent.cost, budget.cost):
        return f"team {team} has spent ${spent.cost:.2f} of its ${budget.cost:.2f} for {spent.day}"
    if budget.tokens is not None and is_near(spent.tokens, budget.tokens):
        return f"team {team} has used {spent.tokens} of its {budget.tokens} tokens for {spent.day}"
    return None


@dataclass(frozen=True, slots=True)
class TeamAllowance:
    """What one run may still spend of its team's budget; `webhooks` are warned once a day."""

    store: Store
    run: str
    team: str
    budget: TeamBudget
    webhooks: Mapping[str, WebhookSettings]

    def find_refusal(self) -> SpendingRefusal | None:
        """Why nothing may be spent now; None if spending is allowed."""
        return find_budget_refusal(self.store.spending.read_today(self.team), self.budget, self.team)

    def charge(self, spent: ModelCallCost) -> str | None:
        """Count a cost; a warning where the budget becomes nearly used up by it."""
        if not spent.tokens_in and not spent.tokens_out and not spent.cost:
            return None
        self.store.spending.add(self.team, spent.cost, spent.tokens_in + spent.tokens_out)
        today = self.store.spending.read_today(self.team)
        near = describe_near_budget(today, self.budget, self.team)
        if near is None or not self.store.spending.mark_warned(self.team):
            return None
        self._queue_warning(today.day, near)
        return near

    def _queue_warning(self, day: str, text: str) -> None:
        document = {"kind": "limit_near", "task_id": self.run, "team": self.team, "detail": text}
        for name, webhook in self.webhooks.items():
            if not webhook.teams or self.team in webhook.teams:
                notice = OutgoingNotice(
                    run=self.run, key=f"limit_near:{day}", target=name, kind="limit_near", document=document
                )
                self.store.notices.put(notice)


def allow_spending(store: Store, row: RunRow, service: ServiceSettings) -> TeamAllowance:
    """The allowance of one run."""
    return TeamAllowance(store, row.id, row.project, service.budget.budget_of(row.project), service.webhooks)
