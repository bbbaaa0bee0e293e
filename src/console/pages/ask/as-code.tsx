import { CopyButton } from '../../parts/secret.tsx';
import { texts } from '../../texts.ts';
import type { QueryBody } from '../../types.ts';

/**
 * Shows the query as a program would send it. The key is a variable of the environment, as the console never sees it.
 */
export function AsCode({ query }: { query: QueryBody }) {
  const service = new URL('.', location.href).href.replace(/\/$/, '');
  return (
    <section class="stack" aria-label={texts.ask.tabs.code}>
      <Code title="curl" code={curlOf(service, query)} />
      <Code title="TypeScript" code={typeScriptOf(service, query)} />
      <Code title="MCP" code={JSON.stringify(mcpCallOf(query), null, 2)} />
    </section>
  );
}

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

function curlOf(service: string, query: QueryBody): string {
  const body = JSON.stringify(query).replaceAll("'", "'\\''");
  return [
    `curl -s '${service}/memory/query' \\`,
    `  -H "authorization: Bearer $CAIRN_KEY" \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${body}'`,
  ].join('\n');
}

function typeScriptOf(service: string, query: QueryBody): string {
  return [
    `import { createClient } from 'cairn-memory/client';`,
    '',
    `const cairn = createClient({ url: '${service}', key: process.env.CAIRN_KEY });`,
    `const answer = await cairn.queryMemories(${JSON.stringify(query, null, 2)});`,
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
