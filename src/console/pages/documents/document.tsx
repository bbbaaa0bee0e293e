import { useEffect, useState } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, PageHead, Tabs, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Erased } from '../../parts/erased.tsx';
import { bytes, duration } from '../../parts/format.ts';
import { sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { Deleted, DocumentItem } from '../../types.ts';
import { followDocument } from './follow-document.ts';
import { nameOf, Progress, StateChip } from './progress.tsx';
import { TextAndChunks } from './text-and-chunks.tsx';
import { TextReceipt } from './text-receipt.tsx';

/** Page of one document: its state, its text and chunks, or its receipt. */
export function DocumentPage() {
  const id = address.value.rest[0] ?? '';
  const [receipt, setReceipt] = useState<Deleted>();
  const { data, error, reload } = useLoad(receipt === undefined ? id : null, (signal) =>
    send<DocumentItem>('GET', `/documents/${encodeURIComponent(id)}`, { signal }),
  );
  if (receipt !== undefined) return <Removed receipt={receipt} />;
  if (error?.status === 404) return <Gone />;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  return (
    <OneDocument
      key={`${data.id} ${data.updated_at} ${data.state}`}
      first={data}
      onChange={reload}
      onRemoved={setReceipt}
    />
  );
}

interface OneDocumentProps {
  readonly first: DocumentItem;
  readonly onChange: () => void;
  readonly onRemoved: (receipt: Deleted) => void;
}

function Gone() {
  return (
    <Empty title={texts.documents.gone}>
      <a class="button" href={hrefOf('documents')}>
        {texts.documents.all}
      </a>
    </Empty>
  );
}

/** Shows what was erased with a document. */
function Removed({ receipt }: { receipt: Deleted }) {
  return (
    <section class="page" role="status">
      <h1>{texts.documents.removed(receipt.deleted)}</h1>
      <Erased receipts={[receipt]} />
      <div>
        <a class="button" href={hrefOf('documents')}>
          {texts.shell.names.documents}
        </a>
      </div>
    </section>
  );
}

function OneDocument({ first, onChange, onRemoved }: OneDocumentProps) {
  const [document, setDocument] = useState(first);
  useEffect(() => followDocument(first, setDocument), [first]);
  return (
    <article class="page">
      <PageHead title={<Line>{nameOf(document)}</Line>}>
        <StateChip document={document} />
        <Actions document={document} onChange={onChange} onRemoved={onRemoved} />
      </PageHead>
      <Progress document={document} />
      <Facts document={document} />
      {document.warnings.length > 0 && (
        <div class="notice notice-warn">
          <b>{texts.documents.warnings}</b>
          <ul>
            {document.warnings.map(({ code, message, page }, at) => (
              <li key={at}>
                {message} <span class="muted small">{page === undefined ? code : `${code}, ${page}`}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {document.shown_at !== null && document.chunks > 0 && <Views document={document} />}
    </article>
  );
}

/**
 * Shows the text of a document beside its chunks, or its receipt, which says which memory contains which characters.
 */
function Views({ document }: { document: DocumentItem }) {
  const tab = address.value.params.get('tab') === 'receipt' ? 'receipt' : 'text';
  return (
    <>
      <Tabs
        label={texts.documents.views}
        value={tab}
        onChange={(next) => changeParams({ tab: next === 'text' ? '' : next }, { replace: true })}
        options={Object.entries(texts.documents.tabs)}
      />
      {tab === 'text' ? <TextAndChunks document={document} /> : <TextReceipt document={document} />}
    </>
  );
}

function Facts({ document }: { document: DocumentItem }) {
  const { receipt, progress } = document;
  const facts: [string, string][] = [
    [texts.memory.user, document.user_id || '–'],
    [texts.documents.format, document.format ?? '–'],
    [texts.documents.size, document.bytes === null ? '–' : bytes(document.bytes)],
    [texts.documents.parts, texts.documents.partsOf(document.chunks, document.pages)],
    [texts.documents.source, document.url ?? document.file_name ?? document.source],
    [texts.documents.sha, document.sha256 ?? '–'],
    [
      texts.documents.receiptName,
      receipt === null ? '–' : texts.documents.receipt(receipt.stored, receipt.kept, receipt.removed),
    ],
    [
      texts.documents.stages,
      Object.entries(progress.stages as Readonly<Record<string, number>>)
        .map(([stage, ms]) => `${stage} ${duration(ms)}`)
        .join(', ') || '–',
    ],
  ];
  return (
    <dl class="facts card-flat">
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
      <dt>{texts.documents.added}</dt>
      <dd>
        <Time at={document.created_at} />
      </dd>
    </dl>
  );
}

interface ActionsProps {
  readonly document: DocumentItem;
  readonly onChange: () => void;
  readonly onRemoved: (receipt: Deleted) => void;
}

function Actions({ document, onChange, onRemoved }: ActionsProps) {
  const [isRemoving, setRemoving] = useState(false);
  const isReading = document.state === 'queued' || document.state === 'processing';
  const cancel = () => void send('POST', `/documents/${document.id}/cancel`).then(onChange, sayRefusal);
  const reread = () => void readAgain(document).then(onChange, sayRefusal);
  const remove = async () => {
    onRemoved(await send<Deleted>('DELETE', `/documents/${document.id}`));
  };
  return (
    <>
      {document.chunks > 0 && (
        <a
          class="button button-small"
          href={hrefOf('ask', { 'filters.documents': document.id, query: nameOf(document) })}
        >
          {texts.documents.askAbout}
        </a>
      )}
      {may('write') && isReading && (
        <button class="button button-small" onClick={cancel}>
          {texts.documents.stop}
        </button>
      )}
      {may('write') && !isReading && document.shown_at !== null && (
        <button class="button button-small" onClick={reread}>
          {texts.documents.reread}
        </button>
      )}
      {may('write') && (
        <button class="button button-small button-bad" onClick={() => setRemoving(true)}>
          {texts.documents.remove}
        </button>
      )}
      {isRemoving && (
        <Dialog
          title={texts.documents.removeTitle}
          action={texts.documents.remove}
          isBad
          onDo={remove}
          onClose={() => setRemoving(false)}
        >
          <p>
            <Line>{nameOf(document)}</Line>
          </p>
        </Dialog>
      )}
    </>
  );
}

const BINARY_FORMATS: ReadonlySet<string> = new Set(['pdf', 'docx', 'pptx', 'xlsx', 'epub']);

/**
 * Makes the service read a document again, with the fields that it has. A web page is fetched from its address; of a
 * file, the service has kept only the extracted text, and reads that. It keeps the name of a file of text; that of any
 * other, such as `book.pdf`, would contradict the text.
 */
async function readAgain(document: DocumentItem): Promise<void> {
  const { url, title, user_id, tags, type, metadata, event_time, expires_at, file_name, format } = document;
  const described = { user_id, title, tags, metadata, type, event_time, expires_at };
  const body =
    url === null
      ? {
          ...described,
          text: await send<string>('GET', `/documents/${document.id}/content`),
          content_type: 'text/markdown',
          file_name: BINARY_FORMATS.has(format ?? '') ? null : file_name,
        }
      : { ...described, url };
  await send('PUT', `/documents/${document.id}`, { body });
}
