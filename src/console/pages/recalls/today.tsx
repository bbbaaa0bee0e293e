import { send } from '../../client.ts';
import { Failed, MemoryLink, Waiting } from '../../parts/basics.tsx';
import { fixed } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { Recall, Replay } from '../../types.ts';

/**
 * Sends the query of an earlier recall (a logged answer) again, and shows which memories are new in the answer, have
 * another rank or are missing, each with the reason.
 * @param path path of the recall in the API
 */
export function Today({ path, recall }: { path: string; recall: Recall }) {
  const { data, error, reload } = useLoad(`${recall.recall_id} now`, (signal) =>
    send<Replay>('POST', `${path}/replay`, { body: { state: 'now' }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  const { moved, gone, new: added } = data;
  const wordsOf = new Map(data.matches.map(({ id, content }) => [id, content.slice(0, 160)]));
  const name = (id: string) => (
    <MemoryLink id={id}>{wordsOf.has(id) ? <Line>{wordsOf.get(id)!}</Line> : undefined}</MemoryLink>
  );
  const place = (rank: number, score: number | null) => (score === null ? rank : `${rank} · ${fixed(score)}`);
  if (moved.length + gone.length + added.length === 0) return <p role="status">{texts.recalls.same}</p>;
  return (
    <section class="stack">
      <p role="status">{texts.recalls.differs}</p>
      <Table label={texts.recalls.tabs.now} columns={texts.recalls.nowColumns}>
        {added.map(({ id, rank, score, why }) => (
          <tr key={id}>
            <td>{name(id)}</td>
            <td class="muted">{texts.recalls.out}</td>
            <td class="nowrap">{place(rank, score)}</td>
            <td>{texts.why.outcomes[why] ?? why}</td>
          </tr>
        ))}
        {moved.map(({ id, from_rank: from, to_rank: to, from_score: was, to_score: is, why }) => (
          <tr key={id}>
            <td>{name(id)}</td>
            <td class="nowrap">{place(from, was)}</td>
            <td class="nowrap">{place(to, is)}</td>
            <td>{why.map((cause) => `${cause.what} ${written(cause.from)} → ${written(cause.to)}`).join(', ')}</td>
          </tr>
        ))}
        {gone.map(({ id, rank, score, why }) => (
          <tr key={id}>
            <td>{name(id)}</td>
            <td class="nowrap">{place(rank, score)}</td>
            <td class="muted">{texts.recalls.out}</td>
            <td>{texts.why.outcomes[why] ?? why}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function written(value: number | string | null): string {
  if (value === null) return '–';
  return typeof value === 'number' ? fixed(value, 3) : value;
}
