import { chosenTenant } from '../../address.ts';
import { CopyButton } from '../../parts/secret.tsx';
import { texts } from '../../texts.ts';
import type { QueryBody } from '../../types.ts';
import type { FederatedBody } from './query-params.ts';

/**
 * Shows the query as curl, TypeScript and MCP would send it. The key is a variable of the environment, as the console
 * never knows it.
 */
export function AsCode({ query }: { query: QueryBody }) {
  return (
    <section class="stack" aria-label={texts.ask.tabs.code}>
      <Code title="curl" code={curlOf('/memory/query', query)} />
      <Code title="TypeScript" code={typeScriptOf('queryMemories', query)} />
      <Mcp query={query} />
    </section>
  );
}

/**
 * Shows the query as a call of the MCP tool `recall`, with the endpoint's address and the fields that the tool lacks.
 */
function Mcp({ query }: { query: QueryBody }) {
  const { call, unknown } = mcpCallOf(query);
  const { user_id: user } = query;
  const tenant = chosenTenant.value;
  const address = `${serviceUrl()}/mcp${user == null || user === '' ? '' : `/users/${encodeURIComponent(user)}`}`;
  return (
    <>
      <Code title="MCP" code={JSON.stringify(call, null, 2)} />
      <p class="small muted">
        {texts.code.mcpAt} <code>{address}</code>
        {tenant !== undefined && (
          <>
            {' '}
            {texts.code.mcpWith} <code>{`x-cairn-tenant: ${tenant}`}</code>
          </>
        )}
        {unknown.length > 0 && '.'}
        {unknown.length > 0 && ` ${texts.code.mcpWithout(unknown.join(', '))}`}
      </p>
    </>
  );
}

/** Shows a query to several tenants and servers as curl and TypeScript would send it; MCP has no tool for it. */
export function FederatedAsCode({ query }: { query: FederatedBody }) {
  return (
    <section class="stack" aria-label={texts.ask.tabs.code}>
      <Code title="curl" code={curlOf('/federation/query', query)} />
      <Code title="TypeScript" code={typeScriptOf('queryFederation', query)} />
    </section>
  );
}

const serviceUrl = () => new URL('.', location.href).href.replace(/\/$/, '');

function Code({ title, code }: { title: string; code: string }) {
  return (
    <div class="stack-tight">
      <div class="between">
        <h2 class="minor">{title}</h2>
        <CopyButton text={code} />
      </div>
      <pre tabIndex={0}>{code}</pre>
    </div>
  );
}

function curlOf(path: string, query: object): string {
  const tenant = chosenTenant.value;
  return [
    `curl -s '${serviceUrl()}${path}' \\`,
    `  -H "authorization: Bearer $CAIRN_KEY" \\`,
    ...(tenant === undefined ? [] : [`  -H ${quoted(`x-cairn-tenant: ${tenant}`)} \\`]),
    `  -H 'content-type: application/json' \\`,
    `  -d ${quoted(JSON.stringify(query))}`,
  ].join('\n');
}

/** Quotes a text for a shell, so that none of its characters has a special meaning. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function typeScriptOf(operation: string, query: object): string {
  const tenant = chosenTenant.value;
  const ofTenant = tenant === undefined ? '' : `, tenant: ${JSON.stringify(tenant)}`;
  return [
    `import { createClient } from 'cairn-memory/client';`,
    '',
    `const cairn = createClient({ url: '${serviceUrl()}', key: process.env.CAIRN_KEY${ofTenant} });`,
    `const answer = await cairn.${operation}(${JSON.stringify(query, null, 2)});`,
  ].join('\n');
}

/**
 * Fields of a query that are not listed as missing in MCP: its tool call or its address has them, or the console alone
 * sets them (`reinforce`, `explain`).
 */
const COVERED = ['query', 'user_id', 'reinforce', 'explain', 'k', 'min_score'];
/** Filters that the tool call also has, under the same or other names. */
const COVERED_FILTERS = ['tags', 'types', 'event_time'];

/**
 * Makes a call of the tool `recall`, which has fewer fields than the API.
 * @returns the call, and the names of the query's fields that the tool lacks
 */
function mcpCallOf(query: QueryBody): { readonly call: object; readonly unknown: readonly string[] } {
  const { query: question, k, min_score, as_of, filters } = query;
  const { valid, recorded } = typeof as_of === 'object' ? (as_of ?? {}) : { valid: as_of, recorded: undefined };
  const { tags, types, sessions = [], event_time: happened } = filters ?? {};
  const hasOneSession = sessions.length === 1;
  const call = {
    method: 'tools/call',
    params: {
      name: 'recall',
      arguments: {
        query: question,
        ...(k == null ? {} : { limit: k }),
        ...(min_score == null ? {} : { min_score }),
        ...(valid == null ? {} : { as_of: isoOf(valid) }),
        ...(happened?.from == null ? {} : { since: isoOf(happened.from) }),
        ...(happened?.to == null ? {} : { until: isoOf(happened.to) }),
        ...(tags == null ? {} : { tags }),
        ...(types == null ? {} : { types }),
        ...(hasOneSession ? { session_id: sessions[0] } : {}),
      },
    },
  };
  const unknown = [
    ...Object.keys(query).filter((name) => ![...COVERED, 'as_of', 'filters'].includes(name)),
    ...(recorded == null ? [] : ['as_of.recorded']),
    ...Object.keys(filters ?? {})
      .filter((name) => !COVERED_FILTERS.includes(name) && !(name === 'sessions' && hasOneSession))
      .map((name) => `filters.${name}`),
  ];
  return { call, unknown };
}

/**
 * Returns a time in ISO 8601, as the tool takes it. A value that is not a time is returned as a text, and the service
 * then says what it expects.
 */
function isoOf(time: number | string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString();
}
