import { MemoryLink, SectorName } from '../../parts/basics.tsx';
import { fixed } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { DecayPreview } from '../../types.ts';

/** Shows a table of memories with their salience today and at a later date. */
export function Falls({ title, falls }: { title: string; falls: DecayPreview['falls'] }) {
  return (
    <Table label={title} columns={texts.decay.columns}>
      {falls.map(({ id, gist, sector, salience_from: from, salience_to: to }) => (
        <tr key={id}>
          <td>
            <MemoryLink id={id}>
              <Line>{gist.slice(0, 160)}</Line>
            </MemoryLink>
          </td>
          <td>
            <SectorName sector={sector} />
          </td>
          <td class="right">{fixed(from)}</td>
          <td class="right">{fixed(to)}</td>
        </tr>
      ))}
    </Table>
  );
}
