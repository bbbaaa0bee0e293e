import { send } from '../../client.ts';
import { Failed, Time, Waiting } from '../../parts/basics.tsx';
import { count, duration } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { ProviderCallItem, ProviderCalls, ProviderUsage } from '../../types.ts';

/** Number of days that the totals cover. */
const DAYS = 30;
const COST = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: 4 });

/** Shows the totals of the calls to providers in the last 30 days, with tokens and cost, and the latest 20 calls. */
export function Calls() {
  const { data, error, reload } = useLoad('calls', async (signal) => {
    const [usage, calls] = await Promise.all([
      send<ProviderUsage>('GET', '/embeddings/stats', { query: { days: DAYS }, signal }),
      send<ProviderCalls>('GET', '/embeddings/log', { query: { l: 20 }, signal }),
    ]);
    return { usage, calls };
  });
  return (
    <section class="stack">
      <h2>
        {texts.work.calls} <span class="small muted">{texts.work.days}</span>
      </h2>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting lines={1} />}
      {data !== undefined && data.usage.totals.calls === 0 && <p class="muted">{texts.work.noCalls}</p>}
      {data !== undefined && data.usage.totals.calls > 0 && (
        <>
          <Totals totals={data.usage.totals} />
          <CallTable calls={data.calls.items} />
        </>
      )}
    </section>
  );
}

function Totals({ totals }: { totals: ProviderUsage['totals'] }) {
  const tiles = [
    [texts.work.callCount, count(totals.calls)],
    [texts.work.callsFailed, count(totals.failed)],
    [texts.work.tokens, count(totals.tokens + totals.output_tokens)],
    [texts.work.cached, count(totals.cached_texts)],
    [texts.work.cost, COST.format(totals.cost_usd)],
  ];
  return (
    <div class="tiles">
      {tiles.map(([name, value]) => (
        <div key={name} class="tile">
          <span>{name}</span>
          <b>{value}</b>
        </div>
      ))}
    </div>
  );
}

function CallTable({ calls }: { calls: readonly ProviderCallItem[] }) {
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.work.calls}>
      <table>
        <thead>
          <tr>
            <th>{texts.work.when}</th>
            <th>{texts.work.model}</th>
            <th>{texts.work.purpose}</th>
            <th class="right">{texts.work.tokens}</th>
            <th class="right">{texts.work.took}</th>
            <th class="right">{texts.work.cost}</th>
            <th>{texts.work.error}</th>
          </tr>
        </thead>
        <tbody class="number">
          {calls.map((call, at) => (
            <tr key={at}>
              <td>
                <Time at={call.at} />
              </td>
              <td>
                {call.provider} {call.model}
              </td>
              <td>{call.purpose}</td>
              <td class="right">{count(call.tokens + call.output_tokens)}</td>
              <td class="right">{duration(call.ms)}</td>
              <td class="right">{COST.format(call.cost_usd)}</td>
              <td>{call.error?.message}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
