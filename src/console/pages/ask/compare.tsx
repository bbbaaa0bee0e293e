import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Failed, MemoryLink, Waiting } from '../../parts/basics.tsx';
import { fixed } from '../../parts/format.ts';
import { type Loaded, useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { Answer, MatchItem } from '../../types.ts';
import { OTHER, queryOf } from './query-params.ts';
import { Settings } from './settings.tsx';

interface CompareProps {
  /** The answer under the first settings. */
  readonly loaded: Loaded<Answer>;
  /** Number of times that “Ask” was pressed. When it changes, the second answer is loaded again. */
  readonly round: number;
}

/** Shows the answers to one query under two sets of settings side by side, and which memories have another rank. */
export function Compare({ loaded: first, round }: CompareProps) {
  const query = queryOf(address.value.params, { isOther: true });
  const second = useLoad(JSON.stringify([round, query]), (signal) =>
    send<Answer>('POST', '/memory/query', { body: query, signal }),
  );
  const error = first.error ?? second.error;
  return (
    <section class="stack" aria-label={texts.ask.tabs.compare}>
      <p class="muted">{texts.compare.about}</p>
      <div class="card-flat stack">
        <div class="between">
          <h2>{texts.compare.other}</h2>
          <button class="button button-small" onClick={adopt}>
            {texts.compare.adopt}
          </button>
        </div>
        <Settings prefix={OTHER} />
      </div>
      {error !== undefined && <Failed error={error} />}
      {error === undefined && (first.data === undefined || second.data === undefined) && <Waiting />}
      {first.data !== undefined && second.data !== undefined && (
        <Moves first={first.data.matches} second={second.data.matches} />
      )}
    </section>
  );
}

/** Makes the second settings of the comparison the first ones, that is, those of the query itself. */
function adopt(): void {
  const others = [...address.value.params].filter(([name]) => name.startsWith(OTHER));
  const changes = others.flatMap(([name, value]) => [
    [name.slice(OTHER.length), value],
    [name, ''],
  ]);
  changeParams(Object.fromEntries(changes) as Record<string, string>);
}

function Moves({ first, second }: { first: readonly MatchItem[]; second: readonly MatchItem[] }) {
  const was = ranksOf(first);
  const now = ranksOf(second);
  const gone = first.filter(({ id }) => !now.has(id));
  const rows = [...second, ...gone];
  const moved = rows.filter(({ id }) => was.get(id)?.rank !== now.get(id)?.rank).length;
  return (
    <>
      <p role="status">{moved === 0 ? texts.compare.same : texts.compare.moved(moved, rows.length)}</p>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.compare.other}>
        <table>
          <thead>
            <tr>
              <th>{texts.compare.first}</th>
              <th>{texts.compare.second}</th>
              <th>{texts.compare.change}</th>
              <th>{texts.compare.memory}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ id, content }) => (
              <tr key={id}>
                <td class="number nowrap">{placeOf(was.get(id))}</td>
                <td class="number nowrap">{placeOf(now.get(id))}</td>
                <td class="nowrap">
                  <Move from={was.get(id)?.rank} to={now.get(id)?.rank} />
                </td>
                <td>
                  <MemoryLink id={id}>
                    <Line>{content.slice(0, 160)}</Line>
                  </MemoryLink>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface Ranked {
  readonly rank: number;
  readonly score: number;
}

function ranksOf(matches: readonly MatchItem[]): ReadonlyMap<string, Ranked> {
  return new Map(matches.map(({ id, score }, index) => [id, { rank: index + 1, score }]));
}

function placeOf(ranked: Ranked | undefined): string {
  return ranked === undefined ? '–' : `${ranked.rank} · ${fixed(ranked.score)}`;
}

function Move({ from, to }: { from: number | undefined; to: number | undefined }) {
  if (from === to) return <span class="muted">{texts.compare.stays}</span>;
  if (from === undefined) return <span class="chip chip-good">{texts.compare.new}</span>;
  if (to === undefined) return <span class="chip chip-bad">{texts.compare.gone}</span>;
  return to < from ? (
    <span class="chip chip-good">↑ {from - to}</span>
  ) : (
    <span class="chip chip-warn">↓ {to - from}</span>
  );
}
