import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Time, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { ErasureItem } from '../../types.ts';
import { countsOf, OneReceipt } from './one-receipt.tsx';

/** Number of receipts on one page of the list. */
const PAGE = 100;

/** Shows the receipts of deletes, newest first, or the one receipt that the address names. */
export function Receipts() {
  const id = address.value.params.get('receipt');
  return id === null ? <AllReceipts /> : <OneReceipt key={id} id={id} />;
}

function AllReceipts() {
  const offset = Number(address.value.params.get('u') ?? 0);
  const { data, error, reload } = useLoad(`receipts ${offset}`, (signal) =>
    send<{ items: readonly ErasureItem[]; total: number }>('GET', '/erasures', {
      query: { l: PAGE, u: offset },
      signal,
    }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  if (data.total === 0) {
    return (
      <Empty title={texts.receipts.empty}>
        <p>{texts.receipts.emptyAbout}</p>
      </Empty>
    );
  }
  return (
    <section class="stack">
      <p class="muted">{texts.receipts.about}</p>
      <Table label={texts.admin.tabs.receipts} columns={texts.receipts.columns}>
        {data.items.map((receipt) => (
          <tr key={receipt.id}>
            <td>{receipt.chain_no === null ? '–' : count(receipt.chain_no)}</td>
            <td>
              <Time at={receipt.begun_at} />
            </td>
            <td>{receipt.kind}</td>
            <td class="mono">{receipt.key ?? '–'}</td>
            <td>{receipt.closed_at === null ? texts.receipts.open : countsOf(receipt)}</td>
            <td>
              <a href={hrefOf('admin', { tab: 'receipts', receipt: receipt.id })}>{texts.receipts.show}</a>
            </td>
          </tr>
        ))}
      </Table>
      {offset + data.items.length < data.total && (
        <div>
          <button class="button" onClick={() => changeParams({ u: offset + PAGE })}>
            {texts.more}
          </button>
        </div>
      )}
    </section>
  );
}
