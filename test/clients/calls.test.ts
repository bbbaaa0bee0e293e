import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/api/routes.ts';
import { CairnError, createClient } from '../../src/client/index.ts';
import { hasPython, pythonEnvironment } from '../support/python.ts';
import { ADMIN_KEY, startApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { CALLS, type Call } from './calls.ts';

/** Both clients make every call of the table against a real server, and get the same. */

type Outcome =
  | { readonly value: unknown }
  | { readonly events: readonly string[] }
  | { readonly code: string; readonly status: number };

test('every operation stands in the table', () => {
  const operations = ROUTES.flatMap(({ name }) => (name === 'listEvents' ? [name, 'watchEvents'] : [name]));
  expect(new Set(CALLS.map(({ call }) => call))).toEqual(new Set(operations));
});

describe.each([
  { client: 'TypeScript', caller: callByTypeScript, isAbsent: false },
  { client: 'Python', caller: callByPython, isAbsent: !hasPython },
])('the $client client', ({ caller, isAbsent }) => {
  test.skipIf(isAbsent)('makes every call of the table', async () => {
    const settings = { OM_VEC_DIM: '256', OM_MODE: 'langgraph', OM_BACKUP_EVERY: '1d', OM_BACKUP_FOLDER: tempFolder() };
    await using api = await startApi({ folder: tempFolder(), workers: true, settings });
    const outcomes = await caller(CALLS, { url: api.url, key: ADMIN_KEY });
    const kept = new Map<string, unknown>();
    const problems: unknown[] = [];
    for (const [n, call] of CALLS.entries()) {
      const outcome = outcomes[n]!;
      try {
        check(call, outcome, kept);
      } catch (error) {
        problems.push([call.call, (error as Error).message, JSON.stringify(outcome).slice(0, 300)]);
      }
      keep(call, outcome, kept);
    }
    expect(problems).toEqual([]);
  });
});

function check({ gives, fails }: Call, outcome: Outcome, kept: ReadonlyMap<string, unknown>): void {
  if (fails !== undefined) return expect(outcome).toMatchObject({ code: fails });
  expect(outcome).not.toHaveProperty('code');
  if (gives === undefined) return;
  if (Array.isArray(gives)) return expect(outcome).toEqual({ events: gives });
  const { value } = outcome as { readonly value: unknown };
  if (typeof gives === 'string') return expect(value).toContain(gives);
  expect(value).toMatchObject(filled(gives, kept) as object);
}

function keep(call: Call, outcome: Outcome, kept: Map<string, unknown>): void {
  for (const [name, path] of Object.entries(call.keep ?? {})) {
    const { value } = outcome as { readonly value?: unknown };
    const steps = path.split('.');
    kept.set(
      name,
      steps.reduce((part: unknown, step) => (part as Readonly<Record<string, unknown>> | undefined)?.[step], value),
    );
  }
}

/** Puts kept values in place of their names. */
function filled(value: unknown, kept: ReadonlyMap<string, unknown>): unknown {
  if (typeof value === 'string') return value.startsWith('$') ? kept.get(value.slice(1)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => filled(one, kept));
  const { $file, $text } = value as { readonly $file?: string; readonly $text?: string };
  if ($file !== undefined) return new File([$text!], $file);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, kept)]));
}

async function callByTypeScript(calls: readonly Call[], connection: { readonly url: string; readonly key: string }) {
  const client = createClient(connection) as unknown as Readonly<Record<string, (input: unknown) => unknown>>;
  const kept = new Map<string, unknown>();
  const outcomes: Outcome[] = [];
  for (const call of calls) {
    const outcome = await outcomeOf(client[call.call]!(filled(call.with ?? {}, kept)));
    keep(call, outcome, kept);
    outcomes.push(outcome);
  }
  return outcomes;
}

async function outcomeOf(reply: unknown): Promise<Outcome> {
  try {
    if (reply instanceof Promise) return { value: await reply };
    const names = new Set<string>();
    for await (const { event } of reply as AsyncIterable<{ readonly event: string }>) {
      names.add(event);
      if (event === 'change') break; // This stream has no end.
    }
    return { events: [...names] };
  } catch (error) {
    if (!(error instanceof CairnError)) throw error;
    return { code: error.code, status: error.status! };
  }
}

async function callByPython(calls: readonly Call[], connection: { readonly url: string; readonly key: string }) {
  const running = promisify(execFile)('python3', ['-c', PROGRAM], { env: pythonEnvironment(), maxBuffer: 2 ** 26 });
  running.child.stdin!.end(JSON.stringify({ ...connection, calls }));
  return JSON.parse((await running).stdout) as Outcome[];
}

const PROGRAM = `
import json, keyword, re, sys
from cairn_memory import CairnError, Client, File, NULL

given = json.load(sys.stdin)
client = Client(given["url"], given["key"])
kept = {}

def filled(value):
    if isinstance(value, str):
        return kept[value[1:]] if value.startswith("$") else value
    if isinstance(value, list):
        return [filled(one) for one in value]
    if isinstance(value, dict) and "$file" in value:
        return File(value["$file"], value["$text"].encode())
    return {name: filled(one) for name, one in value.items()} if isinstance(value, dict) else value

def outcome_of(call):
    method = getattr(client, re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), call["call"]))
    fields = {name + "_" if keyword.iskeyword(name) else name: NULL if value is None else filled(value)
              for name, value in call.get("with", {}).items()}
    try:
        reply = method(**fields)
        if not hasattr(reply, "__next__"):
            return {"value": reply}
        names = {}
        for event in reply:
            names[event.event] = True
            if event.event == "change":
                break
        return {"events": list(names)}
    except CairnError as error:
        return {"code": error.code, "status": error.status}

outcomes = []
for call in given["calls"]:
    outcome = outcome_of(call)
    for name, place in call.get("keep", {}).items():
        value = outcome.get("value") or {}
        for step in place.split("."):
            value = value.get(step, {})
        kept[name] = value
    outcomes.append(outcome)
print(json.dumps(outcomes))
`;
