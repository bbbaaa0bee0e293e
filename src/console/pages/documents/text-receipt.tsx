import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { Failed, MemoryLink, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { sha256 } from '../../parts/sha256.ts';
import { Table } from '../../parts/table.tsx';
import { sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { DocumentItem, TextReceipt as Receipt } from '../../types.ts';

/** Greatest number of spans that are listed. `cairn receipt` lists all of them. */
const LISTED = 1_000;

/** Shows which memory contains which characters of a document's text, and what was left out. */
export function TextReceipt({ document }: { document: DocumentItem }) {
  const { data, error, reload } = useLoad(`${document.id} ${document.updated_at}`, (signal) =>
    send<Receipt>('GET', `/documents/${document.id}/receipt`, { query: { l: LISTED }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack" aria-label={texts.documents.receiptName}>
      <div class="row">
        <span class={`chip ${data.complete ? 'chip-good' : 'chip-bad'}`}>
          {data.complete ? texts.receipts.complete : texts.receipts.incomplete}
        </span>
        <span class="number">{texts.receipts.held(count(data.held), count(data.characters))}</span>
        <Verify receipt={data} />
      </div>
      <Omissions receipt={data} />
      {data.items.length > 0 && (
        <Table label={texts.receipts.document} columns={texts.receipts.spans}>
          {data.items.map((span) => (
            <tr key={span.memory_id}>
              <td class="nowrap">{`${count(span.start_offset)}–${count(span.end_offset)}`}</td>
              <td>
                <MemoryLink id={span.memory_id} />
              </td>
              <td>
                {!span.intact && <span class="chip chip-bad">{texts.receipts.changed}</span>}
                {span.intact && (span.kept ? texts.receipts.kept : texts.receipts.isNew)}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </section>
  );
}

function Omissions({ receipt: { omissions, warnings } }: { receipt: Receipt }) {
  if (omissions.length + warnings.length === 0) return null;
  return (
    <div class="stack-tight">
      <h2>{texts.receipts.leftOut}</h2>
      <ul>
        {omissions.map(({ reason, characters, count: times }) => (
          <li key={reason}>
            {texts.receipts.reasons[reason] ?? reason}:{' '}
            <span class="number">{texts.receipts.omission(characters, times)}</span>
          </li>
        ))}
        {warnings.map(({ code, message }, at) => (
          <li key={`${code} ${at}`}>{message}</li>
        ))}
      </ul>
    </div>
  );
}

type Verdict = 'verified' | 'differs' | 'noCrypto';

/**
 * Shows a button that computes the hash of the service's text in the browser, and compares it with that of the receipt.
 */
function Verify({ receipt }: { receipt: Receipt }) {
  const [verdict, setVerdict] = useState<Verdict>();
  const verify = async () => {
    const sum = await sha256(await send<string>('GET', `/documents/${receipt.id}/content`));
    const expected = receipt.sha256 ?? receipt.held_sha256;
    setVerdict(sum === undefined ? 'noCrypto' : sum === expected ? 'verified' : 'differs');
  };
  return (
    <>
      <button class="button button-small" onClick={() => void verify().catch(sayRefusal)}>
        {texts.receipts.verify}
      </button>
      <span role="status">
        {verdict !== undefined && (
          <span
            class={`chip ${verdict === 'verified' ? 'chip-good' : verdict === 'differs' ? 'chip-bad' : 'chip-warn'}`}
          >
            {texts.receipts[verdict]}
          </span>
        )}
      </span>
    </>
  );
}
