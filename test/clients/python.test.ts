import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { snakeCase } from '../../reference/python-client.ts';
import { ROUTES } from '../../src/api/routes.ts';
import { hasPython, pythonEnvironment } from '../support/python.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Runs a program with the client on its path, and returns what it printed as JSON. */
async function runPython(program: string, ...values: readonly string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)('python3', ['-c', program, ...values], {
    env: pythonEnvironment(),
  });
  return JSON.parse(stdout);
}

test.skipIf(!hasPython)('every operation has a method in Python, and every method an operation', async () => {
  const names = await runPython(`
import json
from cairn_memory import Client
print(json.dumps([name for name in vars(Client) if not name.startswith("_")]))`);
  const routes = ROUTES.map(({ name }) => snakeCase(name));
  expect((names as string[]).sort()).toEqual([...routes, 'watch_events'].sort());
});

test.skipIf(!hasPython)('the Python client stores, finds, lists, uploads, watches and erases', async () => {
  const api = await startApi({ folder: tempFolder(), workers: true, settings: { OM_VEC_DIM: '256' } });
  try {
    const results = await runPython(CALLS, api.url, ADMIN_KEY);
    expect(results).toEqual({
      found: true,
      patched: ['ops'],
      stale: ['conflict', 409],
      listed: 5,
      batches: true,
      text: true,
      events: 'ready',
      file: 'runbook é.md',
      item: { a: [1, null, 'é'] },
      gone: ['not_found', 404],
      empty: 'invalid',
      refused: true,
      metrics: true,
      cleared: null,
      added: [0, 1, 'invalid'],
      silent: 'timeout',
      away: 'unreachable',
      happened: 'memory.stored',
    });
  } finally {
    await api.stop();
  }
});

test.skipIf(!hasPython)('a redirect is an error in Python, and no key goes where it leads', async () => {
  const keys: unknown[] = [];
  const elsewhere = createServer((request, response) => {
    keys.push(request.headers.authorization);
    response.end('{}');
  });
  const here = createServer((_, response) => {
    const { port } = elsewhere.address() as AddressInfo;
    response.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end();
  });
  for (const server of [elsewhere, here]) await once(server.listen(0, '127.0.0.1'), 'listening');
  const program = `
import json, sys
from cairn_memory import CairnError, Client
try:
    Client(sys.argv[1], "secret", retries=0).get_health()
    print(json.dumps("answered"))
except CairnError as error:
    print(json.dumps([error.code, str(error)]))`;
  const origin = `http://127.0.0.1:${(here.address() as AddressInfo).port}`;
  const sentence = expect.stringMatching(`^${origin} redirects to .*, which is not followed`) as string;
  expect(await runPython(program, origin)).toEqual(['no_cairn', sentence]);
  expect(keys).toEqual([]);
  for (const server of [elsewhere, here]) server.close();
});

const CALLS = `
import json, socket, sys
from cairn_memory import NULL, CairnError, Client, File

client = Client(sys.argv[1], sys.argv[2])
results = {}

def failure(call):
    try:
        call()
    except CairnError as error:
        return error

memory = client.ready(client.add_memory(content="The rollback job runs every night.", user_id="ana"))
matches = client.query_memories(query="rollback job", filters={"user_id": "ana"})["matches"]
results["found"] = [match["id"] for match in matches] == [memory["id"]]
results["patched"] = client.patch_memory(id=memory["id"], tags=["ops"], if_match='"1"')["tags"]
error = failure(lambda: client.patch_memory(id=memory["id"], tags=[], if_match='"1"'))
results["stale"] = [error.code, error.status]
batch = client.add_memories(items=[{"content": f"Fact number {n}.", "user_id": "many"} for n in range(5)])
results["batches"] = batch["accepted"] == 5
results["listed"] = len({entry["id"] for entry in client.each(client.list_memories, user_id="many", l=2)})
receipt = client.ingest_document(
    file=File("runbook é.md", b"# Rollback\\n\\nRun the rollback job.\\n"), tags=["ops"], metadata={"team": "infra"}
)
*_, last = client.watch_document(id=receipt["document_id"])
results["events"] = last.data["state"]
results["file"] = client.get_document(id=receipt["document_id"])["file_name"]
results["text"] = "Run the rollback job." in client.get_document_content(id=receipt["document_id"])
client.put_item(key="a/b?c#d", namespace="n", value={"a": [1, None, "é"]})
results["item"] = client.get_item(key="a/b?c#d", namespace="n")["value"]
client.delete_memory(id=memory["id"])
error = failure(lambda: client.get_memory(id=memory["id"]))
results["gone"] = [error.code, error.status]
results["empty"] = failure(lambda: client.delete_memory(id="")).code
error = failure(lambda: Client(sys.argv[1], "wrong").get_stats())
results["refused"] = error.code == "unauthenticated" and "wrong" not in str(error)
other = client.add_memory(content="It has a type until it is cleared.", type="note", user_id="ana")
results["cleared"] = client.patch_memory(id=other["id"], type=NULL)["type"]
added = list(client.add_all([{"content": "First of three."}, {"content": "Second of three."}, {"content": ""}], batch_size=2))
results["added"] = [added[0]["index"], added[1]["index"], added[2]["error"]["code"]]
silent = socket.create_server(("127.0.0.1", 0))
port = silent.getsockname()[1]
results["silent"] = failure(lambda: Client(f"http://127.0.0.1:{port}", timeout=0.2).get_stats()).code
silent.close()
results["away"] = failure(lambda: Client(f"http://127.0.0.1:{port}", retries=0).get_stats()).code
results["happened"] = next(client.watch_events(kinds="memory.stored")).data["kind"]
results["metrics"] = "cairn_" in client.get_metrics()
print(json.dumps(results))
`;
