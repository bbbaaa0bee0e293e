import { chosenTenant } from '../../address.ts';
import { CopyButton } from '../../parts/secret.tsx';
import { texts } from '../../texts.ts';
import type { QueryBody } from '../../types.ts';
import type { FederatedBody } from './query-params.ts';

/**
 * Shows the query as a program would send it. The key is a variable of the environment, as the console never sees it.
 */
export function AsCode({ query }: { query: QueryBody }) {
  return (
    <section class="stack" aria-label={texts.ask.tabs.code}>
      <Code title="curl" code={curlOf('/memory/query', query)} />
      <Code title="TypeScript" code={typeScriptOf('queryMemories', query)} />
      <Code title="MCP" code={JSON.stringify(mcpCallOf(query), null, 2)} />
    </section>
  );
}

/** A question to several tenants and servers; MCP has no tool for it. */
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

/** A word of a shell that means what it says, whatever it holds. */
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

/** The tool `recall` knows fewer fields than the API; the others are left out. */
function mcpCallOf({ query, k, min_score, as_of, filters }: QueryBody): object {
  const valid = typeof as_of === 'object' ? as_of?.valid : as_of;
  return {
    method: 'tools/call',
    params: {
      name: 'recall',
      arguments: {
        query,
        ...(k == null ? {} : { limit: k }),
        ...(min_score == null ? {} : { min_score }),
        ...(valid == null ? {} : { as_of: new Date(valid).toISOString() }),
        ...(filters?.tags == null ? {} : { tags: filters.tags }),
        ...(filters?.types == null ? {} : { types: filters.types }),
        ...(filters?.sessions == null ? {} : { session_id: filters.sessions[0] }),
      },
    },
  };
}
