"""A limit that was reached and a host that ran out are told apart, in the forms of kernels, kubelets and systemd."""

import pytest
from platform_rows import lines, recording

from opsleuth.analysis.log_messages import find_fault_messages
from opsleuth.analysis.memory_kills import MemoryKill, choose_memory_kill, read_memory_kill
from opsleuth.models.fault_advice import advice_for_memory_kill

FORMS = [
    ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/kubepods/pod7,task=java,pid=3001,uid=1000", "limit", "java"),
    ("Memory cgroup out of memory: Killed process 3001 (java) total-vm:4812312kB, anon-rss:512000kB", "limit", "java"),
    ("Memory cgroup out of memory: Kill process 3001 (java) score 1000 or sacrifice child", "limit", "java"),
    ("Task in /docker/77f2 killed as a result of limit of /docker/77f2", "limit", ""),
    ("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/mysql.service,task=mysqld,pid=1,uid=112", "host", "mysqld"),
    ("Out of memory: Killed process 3001 (mysqld) total-vm:9812312kB", "host", "mysqld"),
    ("Out of memory: Kill process 3001 (mysqld) score 912 or sacrifice child", "host", "mysqld"),
    ("SystemOOM: System OOM encountered, victim process: java, pid: 3001", "host", "java"),
    ("OOMKilled: Container orders-api was OOMKilled (limit 512Mi)", "container", ""),
    ("Killed /user.slice/user@1000.service/app.slice/report.service due to memory pressure for /user.slice being 62.45% > 50.00% for > 20s with reclaim activity", "pressure", "report"),
    ("java.lang.OutOfMemoryError: Java heap space", "heap", ""),
    ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "heap", ""),
]  # fmt: skip


@pytest.mark.parametrize(("line", "scope", "process"), FORMS)
def test_a_line_says_what_ran_out_and_who_was_killed(line: str, scope: str, process: str) -> None:
    assert read_memory_kill(line) == MemoryKill(scope, process)


@pytest.mark.parametrize("line", ["nginx invoked oom-killer: gfp_mask=0xcc0", "fork: Cannot allocate memory"])
def test_a_line_that_does_not_say_what_ran_out_decides_nothing(line: str) -> None:
    assert read_memory_kill(line) is None


def test_a_killed_container_on_a_node_that_ran_out_was_not_at_its_limit() -> None:
    kills = [MemoryKill("container")] * 3 + [MemoryKill("host", "java")]
    assert choose_memory_kill(kills) == MemoryKill("host", "java")


@pytest.mark.parametrize(("line", "scope", "process"), FORMS)
def test_the_lines_of_a_service_are_found_with_their_scope(line: str, scope: str, process: str) -> None:
    [found] = find_fault_messages(recording(logs=lines("node-1", ["x invoked oom-killer: order=0", line])))
    assert found.kind == "out_of_memory"
    assert (found.figures["memory_scope"], found.figures.get("process", "")) == (scope, process)


def test_the_advice_differs_by_what_ran_out() -> None:
    texts = {scope: advice_for_memory_kill(scope, "orders", "java") for scope in ("limit", "container", "host", "pressure", "heap")}  # fmt: skip
    assert len({text for advice in texts.values() for text in advice}) == 10
    assert "Raise the memory limit" in texts["limit"][0]
    assert "biggest process of the host" in texts["host"][0]
    assert "Raise the memory limit" not in " ".join(texts["host"])
    assert advice_for_memory_kill("", "orders", "") == ()
