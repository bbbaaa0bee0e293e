import { hrefOf } from '../address.ts';
import { may } from '../session.ts';
import { texts } from '../texts.ts';
import type { Deleted } from '../types.ts';
import { count } from './format.ts';
import { CopyButton } from './secret.tsx';

/** Shows the sums of what several deletes erased, and the tokens by which a user can prove the erasures later. */
export function Erased({ receipts }: { receipts: readonly Deleted[] }) {
  const tokens = receipts.flatMap(({ erasure }) => (erasure === undefined ? [] : [erasure]));
  return (
    <div class="card stack">
      <p>{texts.memory.receiptAbout}</p>
      <dl class="facts number">
        {Object.entries(sumOf(receipts)).map(([name, rows]) => (
          <>
            <dt>{name.replaceAll('_', ' ')}</dt>
            <dd>{count(rows)}</dd>
          </>
        ))}
      </dl>
      {tokens.length > 0 && <Proof tokens={tokens} />}
    </div>
  );
}

/** Shows the tokens of the receipts. They contain the salts of the hashes, which the service does not return again. */
function Proof({ tokens }: { tokens: readonly string[] }) {
  const text = tokens.join('\n');
  return (
    <div class="notice notice-good stack-tight">
      <b>{texts.receipts.token(tokens.length)}</b>
      <div class="row">
        <code class="secret grow">{text}</code>
        <CopyButton text={text} />
      </div>
      <p>{texts.receipts.command}</p>
      <pre tabIndex={0}>{`cairn verify-erasure ${tokens.join(' ')}`}</pre>
      {may('admin') && tokens.length === 1 && (
        <div>
          <a href={hrefOf('admin', { tab: 'receipts', receipt: text.split('.')[0] })}>{texts.receipts.show}</a>
        </div>
      )}
    </div>
  );
}

function sumOf(receipts: readonly Deleted[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const { removed } of receipts)
    for (const [name, rows] of Object.entries(removed)) sum[name] = (sum[name] ?? 0) + rows;
  return sum;
}
