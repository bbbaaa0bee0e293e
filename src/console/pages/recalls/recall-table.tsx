import { hrefOf } from '../../address.ts';
import { Time } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { RecallList } from '../../types.ts';

/** Shows recalls as rows, each with a link to the details of its answer. */
export function RecallTable({ items }: { items: RecallList['items'] }) {
  return (
    <Table label={texts.recalls.title} columns={texts.recalls.columns}>
      {items.map(({ recall_id: id, at, query, user_ids: users, matches }) => (
        <tr key={id}>
          <td>
            <Time at={at} />
          </td>
          <td>
            <a href={hrefOf(['recall', id])}>
              {query === null ? texts.recalls.withheld : <Line>{query.slice(0, 200)}</Line>}
            </a>
          </td>
          <td>{users.join(', ') || <span class="muted">{texts.recalls.allUsers}</span>}</td>
          <td class="right">{count(matches)}</td>
        </tr>
      ))}
    </Table>
  );
}
