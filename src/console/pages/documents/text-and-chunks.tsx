import { useRef } from 'preact/hooks';
import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Failed, MemoryLink, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { ChunkItem, DocumentItem } from '../../types.ts';
import { nameOf } from './progress.tsx';

/** Greatest length of the text that is shown, in UTF-16 code units; the whole text can be downloaded. */
const SHOWN_CHARACTERS = 400_000;

/**
 * Shows the text that was extracted from a document beside its chunks, up to 1,000. The chosen chunk is marked in the
 * text.
 */
export function TextAndChunks({ document }: { document: DocumentItem }) {
  const { data, error, reload } = useLoad(`${document.id} ${document.updated_at}`, async (signal) => {
    const [text, { items }] = await Promise.all([
      send<string>('GET', `/documents/${document.id}/content`, { signal }),
      send<{ items: readonly ChunkItem[] }>('GET', `/documents/${document.id}/chunks`, { query: { l: 1000 }, signal }),
    ]);
    return { text, chunks: items };
  });
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  const chosen = data.chunks.find(({ memory_id: id }) => id === address.value.params.get('part'));
  return (
    <div class="halves">
      <section class="stack-tight">
        <div class="between">
          <h2>{texts.documents.content}</h2>
          <button
            class="button button-plain button-small"
            onClick={() => download(`${nameOf(document)}.md`, data.text)}
          >
            {texts.documents.whole}
          </button>
        </div>
        <Text key={chosen?.memory_id} text={data.text} chosen={chosen} />
      </section>
      <section class="stack-tight">
        <h2>{texts.documents.chunks}</h2>
        <ol class="list stack-tight" tabIndex={0} aria-label={texts.documents.chunks}>
          {data.chunks.map((chunk) => (
            <li key={chunk.memory_id} class="card-flat between">
              <div class="stack-tight grow">
                <span class="line">
                  <Line>
                    {chunk.heading_path.join(' › ') || data.text.slice(chunk.start_offset ?? 0, chunk.end_offset ?? 0)}
                  </Line>
                </span>
                <span class="small muted number">
                  {chunk.chunk === null ? '' : `${chunk.chunk + 1} · `}
                  {chunk.page_from !== null &&
                    `${texts.ask.pages(chunk.page_from, chunk.page_to ?? chunk.page_from)} · `}
                  {texts.documents.tokens(chunk.tokens)}
                </span>
              </div>
              <button
                class="button button-small"
                onClick={() => changeParams({ part: chunk.memory_id }, { replace: true })}
                aria-pressed={chosen === chunk}
              >
                {texts.documents.inText}
              </button>
              <MemoryLink id={chunk.memory_id}>{texts.open}</MemoryLink>
            </li>
          ))}
        </ol>
      </section>
    </div>
  );
}

/** Saves a text as a file in the browser. A link to the service would not carry the tenant. */
function download(name: string, text: string): void {
  const link = Object.assign(window.document.createElement('a'), {
    href: URL.createObjectURL(new Blob([text], { type: 'text/markdown' })),
    download: name,
  });
  link.click();
  URL.revokeObjectURL(link.href);
}

function Text({ text, chosen }: { text: string; chosen: ChunkItem | undefined }) {
  const ref = useRef<HTMLElement>(null);
  const shown = text.slice(0, SHOWN_CHARACTERS);
  const from = chosen?.start_offset ?? 0;
  const to = chosen?.end_offset ?? 0;
  return (
    <pre
      class="list text"
      tabIndex={0}
      ref={() => ref.current?.scrollIntoView({ block: 'nearest' })}
      aria-label={texts.documents.content}
    >
      {shown.slice(0, from)}
      {to > from && <mark ref={ref}>{shown.slice(from, to)}</mark>}
      {shown.slice(Math.max(from, to))}
      {shown.length < text.length && `\n\n${texts.documents.cut(count(SHOWN_CHARACTERS))}`}
    </pre>
  );
}
