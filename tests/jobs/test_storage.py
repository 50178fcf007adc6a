"""Storage of workers: host paths, downloads, credentials, and what upstream got wrong with them."""

from __future__ import annotations

import re

import pytest

from pysedna.jobs.problems import Problem
from pysedna.jobs.storage import Credential, Source, Storage, credential, storage


def made(*sources: Source) -> Storage:
    result = storage(sources)
    assert isinstance(result, Storage), result
    return result


def refused(*sources: Source) -> Problem:
    result = storage(sources)
    assert isinstance(result, Problem), result
    return result


def environment(result: Storage) -> dict[str, object]:
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in result.environment}


KEYS = Credential("keys", "https://store:9000")


def test_a_file_of_the_node_is_seen_through_its_directory() -> None:
    result = made(Source("MODEL_URL", "/models/big/frozen.pb"))
    (volume,) = result.volumes
    assert volume["hostPath"] == {"path": "/models/big", "type": "Directory"}
    assert volume["name"].startswith("models-big-")
    assert result.mounts == [{"name": volume["name"], "mountPath": "/home/data/models/big"}]
    assert environment(result) == {"MODEL_URL": "/home/data/models/big/frozen.pb", "DATA_PATH_PREFIX": "/home/data"}


def test_a_path_with_a_slash_at_its_end_is_a_directory_and_is_mounted_itself() -> None:
    result = made(Source("MODEL_URL", "/models/big/"))
    assert result.volumes[0]["hostPath"]["path"] == "/models/big"
    assert result.mounts[0]["mountPath"] == "/home/data/models/big"
    assert environment(result)["MODEL_URL"] == "/home/data/models/big"


@pytest.mark.parametrize("url", ["/model", "/", "//", "/./model"])
def test_fault_33_the_root_of_the_node_is_never_mounted(url: str) -> None:
    problem = refused(Source("MODEL_URL", url))
    assert problem.reason == "InvalidURL"
    assert "root of the node" in problem.message


def test_fault_32_two_paths_that_look_alike_are_two_volumes() -> None:
    result = made(Source("A", "/a_b/x"), Source("B", "/a-b/x"))
    first, second = result.volumes
    assert first["name"] != second["name"]
    assert {volume["hostPath"]["path"] for volume in result.volumes} == {"/a_b", "/a-b"}


def test_fault_32_one_directory_is_mounted_once_whoever_needs_it() -> None:
    result = made(Source("A", "/models/one.pb"), Source("B", "/models/two.pb"), Source("C", "/models//three.pb"))
    assert len(result.volumes) == len(result.mounts) == 1
    assert environment(result)["C"] == "/home/data/models/three.pb"


def test_a_long_path_makes_a_name_that_a_volume_may_have() -> None:
    result = made(Source("A", "/" + "Ünï_code/" * 30 + "x"))
    name = result.volumes[0]["name"]
    assert len(name) <= 63
    assert name.replace("-", "").isalnum()
    assert name == name.lower()
    assert name.isascii()


def test_a_download_is_made_by_one_init_container_before_the_worker_starts() -> None:
    result = made(
        Source("MODEL_URL", "s3://bucket/dir/m.pb", download=True, credential=KEYS),
        Source("OTHER", "https://host:8443/x.bin?token=1", download=True),
    )
    (container,) = result.init_containers
    assert container["name"] == "storage-initializer"
    assert container["image"] == "kubeedge/sedna-storage-initializer:v0.3.0"
    assert container["args"] == [
        "s3://bucket/dir/m.pb",
        "/downloads/bucket/dir/",
        "https://host:8443/x.bin?token=1",
        "/downloads/host:8443/",
    ]
    assert [variable["name"] for variable in container["env"]] == [
        "S3_ENDPOINT_URL",
        "ACCESS_KEY_ID",
        "SECRET_ACCESS_KEY",
        "INDIRECT_URL_MARK",
    ]
    assert result.volumes == [{"name": "sedna-storage-initializer", "emptyDir": {}}]
    assert container["volumeMounts"] == [{"name": "sedna-storage-initializer", "mountPath": "/downloads"}]
    assert result.mounts == [{"name": "sedna-storage-initializer", "mountPath": "/downloads", "readOnly": True}]
    assert environment(result) == {
        "MODEL_URL": "/downloads/bucket/dir/m.pb",
        "OTHER": "/downloads/host:8443/x.bin",
    }, "the worker needs no keys for what is fetched before it"


def test_a_url_that_the_worker_opens_itself_is_passed_on_with_the_keys() -> None:
    result = made(Source("MODEL_URL", "s3://bucket/m.pb", credential=KEYS))
    assert not result.init_containers
    assert not result.volumes
    assert environment(result) == {
        "MODEL_URL": "s3://bucket/m.pb",
        "S3_ENDPOINT_URL": "https://store:9000",
        "ACCESS_KEY_ID": {"secretKeyRef": {"name": "keys", "key": "ACCESS_KEY_ID"}},
        "SECRET_ACCESS_KEY": {"secretKeyRef": {"name": "keys", "key": "SECRET_ACCESS_KEY"}},
    }


def test_keys_are_not_given_out_for_urls_that_need_none() -> None:
    result = made(Source("A", "https://host/x", credential=KEYS), Source("B", "/data/x", credential=KEYS))
    assert set(environment(result)) == {"A", "B", "DATA_PATH_PREFIX"}


def test_an_unknown_scheme_is_passed_on_as_it_is() -> None:
    result = made(Source("A", "hdfs://name/x", download=True))
    assert (environment(result), result.volumes, result.init_containers) == ({"A": "hdfs://name/x"}, [], [])


def test_an_index_file_on_the_node_is_read_by_the_init_container_only() -> None:
    result = made(Source("A", "/data/index.txt", indirect=True, credential=KEYS))
    (container,) = result.init_containers
    assert container["args"] == ["/home/data/data/index.txt", "@/downloads/data/"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/downloads", "/home/data/data"]
    assert [mount["mountPath"] for mount in result.mounts] == ["/downloads"]
    assert environment(result) == {"A": "/downloads/data/index.txt"}


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("models/m.pb", "absolute path"),
        ("$data_url", "absolute path"),
        ("/models/../etc/shadow", r"'\.\.'"),
        ("s3://bucket/../../etc/x", r"'\.\.'"),
        ("s3:///x", "no bucket"),
        ("https:///x", "no host"),
        ("http://[bad", "cannot be read"),
    ],
)
def test_a_url_that_cannot_work_is_a_problem_that_names_it(url: str, says: str) -> None:
    problem = refused(Source("MODEL_URL", url, download=True))
    assert problem.reason == "InvalidURL"
    assert url in problem.message
    assert "MODEL_URL" in problem.message
    assert re.search(says, problem.message)


def test_two_stores_in_one_worker_are_a_problem_since_there_is_one_set_of_variables() -> None:
    other = Credential("other", "https://elsewhere")
    problem = refused(Source("A", "s3://a/x", credential=KEYS), Source("B", "s3://b/x", credential=other))
    assert problem.reason == "CredentialClash"
    assert "keys" in problem.message
    assert "other" in problem.message


def test_two_secrets_for_one_store_are_taken_for_the_same_keys() -> None:
    again = Credential("again", KEYS.endpoint)
    result = made(Source("A", "s3://a/x", credential=KEYS), Source("B", "s3://b/x", credential=again))
    assert environment(result)["ACCESS_KEY_ID"] == {"secretKeyRef": {"name": "keys", "key": "ACCESS_KEY_ID"}}


def test_a_secret_says_in_its_annotations_which_store_it_opens() -> None:
    assert credential("s", {"s3-endpoint": "store"}) == Credential("s", "https://store")
    assert credential("s", {"s3-endpoint": "store", "s3-usehttps": "0"}) == Credential("s", "http://store")


def test_an_endpoint_with_a_scheme_is_told_since_no_worker_could_use_it() -> None:
    problem = credential("keys", {"s3-endpoint": "http://minio:9000"})
    assert isinstance(problem, Problem)
    assert problem.reason == "SecretInvalid"
    assert "leave out the scheme" in problem.message


@pytest.mark.parametrize("annotations", [{}, {"s3-endpoint": ""}])
def test_fault_10_a_secret_without_annotations_is_a_problem_of_the_job_and_not_of_the_manager(
    annotations: dict[str, str],
) -> None:
    problem = credential("s", annotations)
    assert isinstance(problem, Problem)
    assert problem.reason == "SecretInvalid"
