import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Time, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { CopyButton } from '../../parts/secret.tsx';
import { bytesOfHex, sha256 } from '../../parts/sha256.ts';
import { sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { ErasureItem, ErasureReply } from '../../types.ts';

/** Greatest number of ids of erased memories that are shown. */
const SHOWN_IDS = 20;
/** Number of receipts that one request reads, in the search for the receipt before. */
const PAGE = 1_000;
/** Text that the hash of the first receipt covers instead of the hash of a receipt before it. */
const NO_HASH = '0'.repeat(64);

/** Shows one receipt of a delete, and a button that checks its hash in the chain of receipts. */
export function OneReceipt({ id }: { id: string }) {
  const { data, error, reload } = useLoad(id, (signal) =>
    send<ErasureReply>('GET', `/erasures/${encodeURIComponent(id)}`, { signal }),
  );
  const back = (
    <div>
      <a class="button" href={hrefOf('admin', { tab: 'receipts' })}>
        {texts.receipts.all}
      </a>
    </div>
  );
  if (error?.status === 404) return <Empty title={texts.receipts.gone}>{back}</Empty>;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <h2>{texts.receipts.one(data.chain_no)}</h2>
      <Facts receipt={data} />
      {data.hash !== null && <ChainCheck receipt={data} />}
      <div class="card-flat stack-tight">
        <h3>{texts.receipts.prove}</h3>
        <p class="muted">{texts.receipts.proveAbout}</p>
        <Command line={`cairn verify-erasure ${data.id}.SALT --path BACKUPS`} />
      </div>
      {back}
    </section>
  );
}

/** Shows a command for a terminal, with a button that copies it. */
function Command({ line }: { line: string }) {
  return (
    <div class="row">
      <pre class="grow" tabIndex={0}>
        {line}
      </pre>
      <CopyButton text={line} />
    </div>
  );
}

function Facts({ receipt }: { receipt: ErasureReply }) {
  const { ids, by, searched } = receipt;
  const facts: [string, ComponentChildren][] = [
    [texts.receipts.id, <code>{receipt.id}</code>],
    [texts.receipts.kind, receipt.kind],
    ...(by.length === 0 ? [] : [[texts.receipts.by, by.join(', ')] as [string, string]]),
    [texts.receipts.key, receipt.key ?? '–'],
    [texts.receipts.begun, <Time at={receipt.begun_at} />],
    [texts.receipts.closed, receipt.closed_at === null ? texts.receipts.open : <Time at={receipt.closed_at} />],
    [texts.receipts.counts, countsOf(receipt)],
    [texts.receipts.searched, searched.join(', ') || '–'],
    [texts.receipts.hashes, texts.receipts.hashCounts(receipt.words, receipt.phrases)],
    [texts.receipts.ids, [...ids.slice(0, SHOWN_IDS), ...(ids.length > SHOWN_IDS ? ['…'] : [])].join(' ') || '–'],
    [texts.receipts.chain, <code>{receipt.hash ?? '–'}</code>],
  ];
  return (
    <dl class="facts card-flat">
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

/** Returns what a delete erased as a text such as `memories 1, vectors 1`; `–` if nothing. */
export function countsOf({ counts }: ErasureItem): string {
  const entries = Object.entries(counts).filter(([, rows]) => rows > 0);
  return entries.map(([name, rows]) => `${name.replaceAll('_', ' ')} ${count(rows)}`).join(', ') || '–';
}

type Verdict = 'holds' | 'broken' | 'first' | 'noCrypto';

/**
 * Shows a button that computes the hash of a receipt in the browser and compares it with the receipt's own hash, so
 * that the user need not trust the service.
 */
function ChainCheck({ receipt }: { receipt: ErasureReply }) {
  const [verdict, setVerdict] = useState<Verdict>();
  const check = () => void verdictOn(receipt).then(setVerdict, sayRefusal);
  return (
    <div class="card-flat stack-tight">
      <h3>{texts.receipts.check}</h3>
      <p class="muted">{texts.receipts.checkAbout}</p>
      <div class="row">
        <button class="button" onClick={check}>
          {texts.receipts.check}
        </button>
        <span role="status">
          {verdict !== undefined && (
            <span class={`chip ${verdict === 'holds' ? 'chip-good' : verdict === 'broken' ? 'chip-bad' : 'chip-warn'}`}>
              {texts.receipts[verdict]}
            </span>
          )}
        </span>
      </div>
    </div>
  );
}

async function verdictOn(receipt: ErasureReply): Promise<Verdict> {
  const before = receipt.chain_no === 1 ? NO_HASH : await hashBefore(receipt.chain_no!);
  if (before === undefined) return 'first';
  const hash = await sha256(bytesOfHex(before), JSON.stringify(linkOf(receipt)));
  if (hash === undefined) return 'noCrypto';
  return hash === receipt.hash ? 'holds' : 'broken';
}

/**
 * Returns the fields that the hash of a receipt covers, besides the hash of the receipt before. They must be the same
 * as in `src/engine/store/erasures.ts`.
 */
function linkOf(receipt: ErasureReply): readonly (string | number | null)[] {
  const { id, kind, key, begun_at, closed_at, by, counts, searched, salt_hash, ids, word_hashes, phrase_hashes } =
    receipt;
  // Receipts of earlier versions have no hash of their salt.
  const detail = { by, counts, searched, ...(salt_hash === null ? {} : { salted: salt_hash }) };
  const texts = [detail, ids, word_hashes, phrase_hashes].map((value) => JSON.stringify(value));
  return [receipt.chain_no, id, kind, key ?? '', begun_at, closed_at, ...texts];
}

/** Returns the hash of the receipt before number `no` of the chain; undefined if that receipt is no longer kept. */
async function hashBefore(no: number): Promise<string | undefined> {
  for (let offset = 0; ; offset += PAGE) {
    const query = { l: PAGE, u: offset };
    const { items } = await send<{ items: readonly ErasureItem[] }>('GET', '/erasures', { query });
    const found = items.find(({ chain_no: place }) => place === no - 1);
    if (found !== undefined || items.length < PAGE) return found?.hash ?? undefined;
  }
}
