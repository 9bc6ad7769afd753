"""Recipes for balancers and Kubernetes: they agree with the proxy, with one another and with the schemas."""

from __future__ import annotations

import copy
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from samples import rows

from proxy.loading import SETTINGS as OURS
from proxy.loading import load
from proxy.observe.metrics.table import ACTIVE
from proxy.server.request.families import RESPONSES

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "scripts" / "balancers"
MANIFESTS = RECIPES / "kubernetes" / "model-proxy.yaml"
KUBERNETES_VERSIONS = ("1.30", "1.37")
DOCUMENTS = [one for one in yaml.safe_load_all(MANIFESTS.read_text()) if one]
#: In a recipe, where a header of a session stands: nginx's variables have `_` for `-`.
SESSION_PLACES = {
    "nginx.conf": r"^    default \$http_(\S+);",
    "haproxy.cfg": r"set-var\(txn\.session\) req\.fhdr\((\S+)\)",
    "envoy.yaml": r"header_name: (\S+) \}, terminal: true",
}


def named(kind: str, name: str) -> Any:
    """The manifest of this kind and name."""
    (found,) = (one for one in DOCUMENTS if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def pod_of(workload: Any) -> Any:
    return workload["spec"]["template"]["spec"]


REPLICAS, BALANCER = named("StatefulSet", "model-proxy"), named("Deployment", "balancer")
SETTINGS = named("ConfigMap", "settings")["data"]
HAPROXY = named("ConfigMap", "balancer")["data"]["haproxy.cfg"]


@pytest.mark.parametrize("recipe", SESSION_PLACES)
def test_a_recipe_knows_every_header_of_a_session_in_our_order(recipe: str) -> None:
    found = re.findall(SESSION_PLACES[recipe], (RECIPES / recipe).read_text(), re.MULTILINE)
    if recipe == "nginx.conf":  # the last of its maps is asked first, and no variable has a `-`
        assert found[::-1] == [name.replace("-", "_") for name in RESPONSES.session_headers]
    else:
        assert found == list(RESPONSES.session_headers)


def test_nginx_is_told_to_keep_headers_with_an_underscore() -> None:
    assert "underscores_in_headers on;" in (RECIPES / "nginx.conf").read_text()


@pytest.mark.parametrize("recipe", ["haproxy.cfg", "envoy.yaml"])
def test_whoever_can_asks_whether_a_replica_is_ready(recipe: str) -> None:
    assert re.search(r"GET /readyz$|path: /readyz", (RECIPES / recipe).read_text(), re.MULTILINE)


def test_the_commands_for_one_machine_make_the_recipe_with_its_processes(tmp_path: Path) -> None:
    (block,) = re.findall(r"```sh\n((?: *sed -e 's/bind.*\n) *for .*\n)", (ROOT / "docs" / "replicas.md").read_text())
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    subprocess.run(["sh", "-euc", block], cwd=tmp_path, check=True)
    made, recipe = ((place / "haproxy.cfg").read_text().splitlines() for place in (tmp_path, RECIPES))
    kept = [line for line in recipe if not line.startswith("    server ")]
    assert made == [
        *(line.replace("bind :8080", "bind 127.0.0.1:18765") for line in kept),
        "    server on-18766 127.0.0.1:18766",
        "    server on-18767 127.0.0.1:18767",
    ]
    assert "    bind 127.0.0.1:18765" in made and kept != recipe


@rows("version", KUBERNETES_VERSIONS)
@rows("document", DOCUMENTS)
def test_a_manifest_fits_the_schema(document: Any, version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_the_schema_refuses_a_word_that_does_not_exist() -> None:
    wrong = copy.deepcopy(REPLICAS)
    pod_of(wrong)["terminationGracePeriod"] = 630
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES_VERSIONS[-1], strict=True)


def test_the_balancer_of_kubernetes_is_the_recipe_with_other_servers() -> None:
    recipe = (RECIPES / "haproxy.cfg").read_text()
    ours = HAPROXY.partition("    # As many as")[0].replace("resolvers cluster init-addr none ", "")
    assert ours == recipe.partition("    server ")[0]


def test_every_pod_that_there_may_be_is_a_server() -> None:
    service = named("Service", REPLICAS["spec"]["serviceName"])
    assert service["spec"]["clusterIP"] == "None"
    zone = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc.cluster.local"
    most = named("HorizontalPodAutoscaler", "model-proxy")["spec"]["maxReplicas"]
    port = service["spec"]["ports"][0]["port"]
    names = [f"replica-{n} {REPLICAS['metadata']['name']}-{n}.{zone}:{port}" for n in range(most)]
    assert re.findall(r"^    server (.*)$", HAPROXY, re.MULTILINE) == names


def test_pods_may_end_as_slowly_as_the_proxy() -> None:
    config, _ = load(SETTINGS)
    assert pod_of(REPLICAS)["terminationGracePeriodSeconds"] * 1000 > config.stop_notice_ms + config.drain_timeout_ms
    check = re.search(r"inter (\d+)s fall (\d+)", HAPROXY)
    assert check is not None
    assert config.stop_notice_ms > 2 * int(check[1]) * int(check[2]) * 1000
    assert pod_of(BALANCER)["terminationGracePeriodSeconds"] * 1000 >= config.drain_timeout_ms


def test_every_variable_is_one_of_ours() -> None:
    (container,) = pod_of(REPLICAS)["containers"]
    variables = {*SETTINGS, *(one["name"] for one in container["env"])}
    known = {name for setting in OURS for name in setting.variables}
    assert variables - known == {"PROXY_CONFIG_DIR", "XDG_STATE_HOME"}


def test_it_scales_by_a_metric_that_is_served() -> None:
    (metric,) = named("HorizontalPodAutoscaler", "model-proxy")["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == ACTIVE.name
    assert SETTINGS["PROXY_METRICS"] == "1"


@pytest.mark.parametrize("workload", [REPLICAS, BALANCER], ids=lambda one: one["kind"])
def test_pods_have_no_more_rights_than_they_need(workload: Any) -> None:
    pod = pod_of(workload)
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"]
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"], "a Service named `proxy` would set PROXY_PORT"
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_every_selector_finds_a_workload_and_every_name_a_manifest() -> None:
    labels = [one["spec"]["template"]["metadata"]["labels"] for one in (REPLICAS, BALANCER)]
    for document in DOCUMENTS:
        spec = document.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is not None:
            assert selector.get("matchLabels", selector) in labels, document["metadata"]
    for claim in (
        one["persistentVolumeClaim"] for one in pod_of(REPLICAS)["volumes"] if "persistentVolumeClaim" in one
    ):
        named("PersistentVolumeClaim", claim["claimName"])
    (container,) = pod_of(REPLICAS)["containers"]
    assert {one["path"] for one in (container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe"))} == {
        "/healthz",
        "/readyz",
    }
