import { connect, type ConnectionOptions } from '../client.ts';
import { bold, counted, dim, print, red, sparkline, table } from '../terminal.ts';

interface ActivityOptions extends ConnectionOptions {
  readonly json?: boolean;
}

const KINDS = ['add', 'query', 'documents', 'read', 'write'] as const;

/**
 * Runs `cairn activity`: prints requests, their durations, jobs and cost of the last hour, and the state of providers.
 */
export async function activity({ json, ...connection }: ActivityOptions): Promise<void> {
  const reply = await connect(connection).getActivity();
  if (json) return print(JSON.stringify(reply, null, 2));
  const { minutes, providers } = reply;
  if (minutes.length === 0) return print('The first minute is not over yet.');
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const row = (name: string, values: readonly number[]) => [name, sparkline(values), String(sum(values))];
  const [head, ...body] = table(
    [
      ['a minute', `the last ${counted(minutes.length, 'minute')}`, 'in all'],
      ...KINDS.map((kind) =>
        row(
          kind,
          minutes.map(({ requests }) => requests[kind].count),
        ),
      ),
      row(
        'jobs done',
        minutes.map(({ jobs_done: done }) => done),
      ),
      row(
        'jobs dead',
        minutes.map(({ jobs_dead: dead }) => dead),
      ),
      row(
        'tokens',
        minutes.map(({ tokens }) => tokens),
      ),
    ],
    '<<>',
  );
  print(dim(head!), ...body, '');
  const latest = minutes.findLast(({ query_p50_ms: half }) => half !== null);
  if (latest !== undefined)
    print(
      `${bold('queries')}  half within ${shown(latest.query_p50_ms)}, 95 of 100 within ${shown(latest.query_p95_ms)}`,
    );
  print(`${bold('cost')}  $${sum(minutes.map(({ cost_usd: cost }) => cost)).toFixed(4)}`);
  for (const { service, sector, breaker_open: isOpen } of providers) {
    const name = [service.replaceAll('_', ' '), ...(sector === null ? [] : [sector])].join(', ');
    print(`${bold(name)}  ${isOpen ? red('left alone after failures') : 'works'}`);
  }
}

function shown(ms: number | null): string {
  return ms === null ? '–' : `${ms.toFixed(1)} ms`;
}
