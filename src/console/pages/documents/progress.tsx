import { texts } from '../../texts.ts';
import type { DocumentItem } from '../../types.ts';

const TONES: Readonly<Record<string, string>> = {
  ready: 'chip-good',
  failed: 'chip-bad',
  empty: 'chip-warn',
  cancelled: 'chip-warn',
};

/** Returns the name of a document: its title, or else its file name, its address or its id. */
export function nameOf({ title, file_name: file, url, id }: DocumentItem): string {
  return title || (file ?? url ?? id);
}

/** Shows the state of a document as a coloured word. */
export function StateChip({ document: { state } }: { document: DocumentItem }) {
  return <span class={`chip ${TONES[state] ?? ''}`}>{state}</span>;
}

/** Shows how much of a document is processed, or the reason why processing failed; nothing in every other state. */
export function Progress({ document: { state, error, progress, pages } }: { document: DocumentItem }) {
  if (error !== null) return <span class="small">{error.message}</span>;
  if (state !== 'processing' && state !== 'queued') return null;
  const { chunks, linked, pages_done: pagesDone } = progress;
  const share = chunks === 0 ? 0 : linked / chunks;
  return (
    <div class="stack-tight">
      <div
        class="bar"
        role="progressbar"
        aria-label={texts.documents.state}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <i style={{ width: `${share * 100}%` }} />
      </div>
      <span class="small muted number">
        {chunks > 0
          ? texts.documents.progress(linked, chunks)
          : pagesDone > 0
            ? texts.documents.pages(pagesDone, pages ?? pagesDone)
            : state}
      </span>
    </div>
  );
}
