/** A service over HTTP on one engine, whose clock and work a program moves; and its replies in a form that compares. */
import { createApp } from '../../../src/api/app.ts';
import { listen } from '../../../src/api/server.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { watchReplies } from '../check-reply.ts';
import { openTestEngine, type TestEngine } from '../engine-fixture.ts';
import { ADMIN_KEY } from '../start-api.ts';
import type { KnownOperation, Step } from './programs.ts';
import { KIND_OF_PATH, KINDS } from './vocabulary.ts';

export interface Service extends AsyncDisposable {
  /** Sends a request, and returns the text of the reply. */
  read(method: string, path: string, body?: object): Promise<string>;
  /** Does a step, and returns what it says, with a number of first appearance in place of each name that is its own. */
  run(step: Step, operations: ReadonlyMap<string, KnownOperation>): Promise<unknown>;
}

/** Fields of replies that only one of the engines has, or that say how long something took. */
const OWN_FIELDS = new Set([
  'database_bytes',
  'wal_bytes',
  'request_id',
  'stages',
  'ms',
  'p95_ms',
  'bytes',
  'database',
]);
/** Fields whose texts are drawn at random, or made of ids. */
const OPAQUE = /^(?:secret|token|.*cursor|next|erasure|etag|.*hash|.*sha256)$/;
/** Ids of what is stored, and public ids of keys. */
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{16}\b/g;

export async function openService(settings: Readonly<Record<string, string>>): Promise<Service> {
  const fixture = await openTestEngine({
    settings: {
      ...{ OM_PORT: '0', OM_API_KEY: ADMIN_KEY, OM_LOG_LEVEL: 'silent', OM_MAX_WRONG_KEYS: '1000000' },
      ...{
        OM_WEBHOOK_ALLOW: '127.0.0.1',
        OM_FEDERATION_ALLOW: '127.0.0.1',
        OM_AUDIT: 'all',
        OM_MODE: 'langgraph',
        OM_MCP_FORGET: 'true',
      },
      ...settings,
    },
  });
  const stop = new AbortController();
  const app = createApp({
    engine: fixture.engine,
    ready: () => ({ ready: true, reasons: [] }),
    metricsText: async () => '',
    activity: async () => ({}) as never,
    version: '0.0.0-test',
    stop: stop.signal,
  });
  const watch = watchReplies(app);
  const { url, closed } = await listen(watch.app, fixture.engine, stop.signal);
  const names = new Map<string, string>();
  const known = new Map<string, string[]>();
  const look = createLook(names, known);
  const resolve = createResolve(known);
  return {
    read: (method, path, body) => read(url, method, path, body),
    async run(step, operations) {
      if ('advance' in step) return fixture.clock.advance(step.advance);
      if ('work' in step) return work(fixture, step.work);
      const operation = operations.get(step.call)!;
      if (operation.name.startsWith('watch')) await fixture.drain();
      const reply = await send(url, operation, resolve(step, step.call) as typeof step);
      await watch.requireDescribed(reply.id);
      // What an answer changes is written a moment later, or before the recall log is read.
      if (/quer|recall|retrieve|context|explain|search|summary|mcp|replay|runEval/i.test(step.call))
        await read(url, 'GET', '/recalls?limit=1');
      return look(operation, reply);
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await closed;
      await fixture.close();
    },
  };
}

async function read(url: string, method: string, path: string, body?: object): Promise<string> {
  const accepted = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, ...accepted };
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return response.text();
}

async function work(fixture: TestEngine, kind: 'drain' | 'upkeep'): Promise<unknown> {
  // No webhook is sent: it would be answered at a time of its own.
  const signal = AbortSignal.abort();
  if (kind === 'drain') await fixture.drain();
  else await runDueSchedules(fixture.maintenance);
  while ((await fixture.tenant.tendStanding(signal)) === 'busy');
  return kind;
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly etag: string | null;
  readonly text: string;
  readonly id: string | null;
}

type Call = Extract<Step, { call: string }>;

async function send(url: string, { method, path }: KnownOperation, step: Call): Promise<Reply> {
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => inUrl(step.path?.[name]) || '%20');
  const search = Object.entries(step.query ?? {})
    .flatMap(([name, value]) => [value].flat().map((one) => `${name}=${inUrl(one)}`))
    .join('&');
  const headers = new Headers({ authorization: `Bearer ${(step.key as string | undefined) ?? ADMIN_KEY}` });
  for (const [name, value] of Object.entries(step.headers ?? {}))
    if (value !== undefined) headers.set(name, value as string);
  const body = bodyOf(step, headers);
  const response = await fetch(url + target + (search === '' ? '' : `?${search}`), {
    method,
    headers,
    ...(body === undefined || method === 'GET' ? {} : { body }),
    signal: AbortSignal.timeout(60_000),
  });
  return {
    status: response.status,
    type: (response.headers.get('content-type') ?? '').split(';')[0]!,
    etag: response.headers.get('etag'),
    text: await response.text(),
    id: response.headers.get('x-request-id'),
  };
}

const inUrl = (value: unknown) =>
  encodeURIComponent((typeof value === 'string' ? value : JSON.stringify(value ?? '')).toWellFormed());

function bodyOf({ body, as }: Call, headers: Headers): string | FormData | undefined {
  if (body === undefined) return undefined;
  if (as === 'form') {
    const form = new FormData();
    const { file, ...fields } = body as Record<string, unknown>;
    for (const [name, value] of Object.entries(fields))
      for (const one of [value].flat()) form.append(name, typeof one === 'string' ? one.toWellFormed() : jsonOf(one));
    form.append('file', new File([String(file)], 'runbook.md'));
    return form;
  }
  const isLines = as === 'ndjson' || typeof body === 'string';
  headers.set('content-type', isLines ? 'application/x-ndjson' : 'application/json');
  if (typeof body === 'string') return body;
  return isLines ? (body as unknown[]).map((line) => `${jsonOf(line)}\n`).join('') : jsonOf(body);
}

/** JSON of a value, with numbers as the vocabulary writes them. */
const jsonOf = (value: unknown) => (JSON.stringify(value) ?? 'null').replaceAll(/"@raw:([^"]*)"/g, '$1');

/** Makes the function that puts what this service has answered in the place of what a step says of it. */
function createResolve(known: ReadonlyMap<string, readonly string[]>) {
  const resolve = (value: unknown, call: string): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((one) => resolve(one, call));
    const { $seen, no, $export, isRenamed } = value as Record<string, unknown>;
    if (typeof $seen === 'string') {
      const all = known.get($seen === 'cursor' ? `cursor ${call}` : $seen) ?? [];
      // The newest are the first, so that a small program names what it has just made.
      return all.length === 0 ? `no ${$seen}` : all[all.length - 1 - (Number(no) % all.length)];
    }
    if ($export !== undefined) {
      const all = known.get('export') ?? [];
      const text = all.length === 0 ? '{"type":"end"}\n' : all[Number($export) % all.length]!;
      return isRenamed === true ? text.replaceAll(UUID, (id) => id.replace(/^./, 'f')) : text;
    }
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, resolve(one, call)]));
  };
  return resolve;
}

/** Makes the function that notes what a reply names, and returns the reply with numbers in place of names. */
function createLook(names: Map<string, string>, known: Map<string, string[]>) {
  const note = (kind: string, text: string) => {
    const all = known.get(kind) ?? [];
    if (!all.includes(text)) known.set(kind, [...all, text]);
  };
  const nameOf = (kind: string, text: string) => {
    const name = names.get(text) ?? `<${kind} ${names.size}>`;
    names.set(text, name);
    return name;
  };
  const replaced = (text: string) =>
    text
      .replaceAll(UUID, (id) => nameOf('id', id))
      .replaceAll(/\b[0-9a-f]{8}\.[0-9a-z]+\.[0-9a-z]+\b/g, (token) => nameOf('token', token))
      .replaceAll(/\b[\w-]{60,}/g, (cursor) => nameOf('cursor', cursor));
  return ({ name: call, path }: KnownOperation, { status, type, etag, text }: Reply): unknown => {
    const [first = ''] = path.split('/').slice(1);
    const walk = (value: unknown, field: string): unknown => {
      if (typeof value === 'string') {
        const kind = field === 'id' ? (KIND_OF_PATH[first] ?? 'memory') : KINDS[field];
        if (field === 'erasure') note('erasure', value.split('.')[0]!);
        if (kind !== undefined && status < 300 && value.search(UUID) === 0) note(kind, value);
        if (call === 'createKey' && field === 'secret') note('secret', value);
        if (/cursor|^next$/.test(field)) note(`cursor ${call}`, value);
        return OPAQUE.test(field) ? nameOf(field, value) : replaced(value);
      }
      if (typeof value !== 'object' || value === null) return value;
      // Hashes with a secret of each service, and sorted by it.
      if (field.endsWith('_hashes')) return (value as unknown[]).length;
      if (Array.isArray(value)) return value.map((one) => walk(one, field));
      const isText =
        typeof (value as { format?: unknown; text?: unknown }).text === 'string' || call === 'diffMemories';
      return Object.fromEntries(
        Object.entries(value).flatMap(([key, one]) =>
          OWN_FIELDS.has(key) ||
          (isText && key === 'tokens') ||
          key === 'avg_salience' ||
          (key === 'at' && (call === 'listEvents' || call === 'listDeliveries'))
            ? []
            : [[replaced(key), walk(one, key)]],
        ),
      );
    };
    if (etag !== null) note('etag', etag);
    if (call === 'exportData' && status === 200) note('export', text);
    if (type === 'text/event-stream') {
      const events = text
        .split('\n')
        .map((line) => (line.startsWith('data: ') ? walk(JSON.parse(line.slice(6)), '') : line));
      return { status, events };
    }
    const parsed = /[/+]json$/.test(type) && text !== '' ? [JSON.parse(text) as unknown] : undefined;
    const lines =
      type === 'application/x-ndjson'
        ? text
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line) as unknown)
        : undefined;
    const body = (parsed ?? lines)?.map((one) => walk(one, '')) ?? replaced(text);
    return { status, type, etag: etag === null ? null : replaced(etag), body };
  };
}
