import { useState } from 'preact/hooks';
import { address } from '../../address.ts';
import { Refusal, send } from '../../client.ts';
import { Field } from '../../parts/basics.tsx';
import { say } from '../../parts/toast.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';

interface Accepted {
  readonly outcome: 'accepted' | 'replaced' | 'unchanged';
}

/** Shows an area where files are dropped or chosen, and an input for the address of a web page. */
export function Drop({ onAccepted }: { onAccepted: () => void }) {
  const bound = session.value?.caller?.user_id ?? null;
  const [user, setUser] = useState(bound ?? address.value.params.get('user_id') ?? '');
  const [problems, setProblems] = useState<readonly string[]>([]);
  const take = async (name: string, hand: () => Promise<Accepted>) => {
    try {
      const { outcome } = await hand();
      say(outcome === 'unchanged' ? texts.documents.unchanged(name) : texts.documents.accepted(name));
      onAccepted();
    } catch (error) {
      const reason = error instanceof Refusal ? error.message : String(error);
      setProblems((before) => [...before, `${name}: ${reason}`]);
    }
  };
  const takeFiles = async (files: Iterable<File>) => {
    setProblems([]);
    // Files are sent one after the other, so that a large folder does not take the places of other people's uploads.
    for (const file of files) await take(file.name, () => upload(file, user));
  };
  const takeLinks = async (urls: readonly string[]) => {
    setProblems([]);
    for (const url of urls) await take(url, () => send('POST', '/memory/ingest/url', { body: { url, user_id: user } }));
  };
  return (
    <section class="stack" aria-label={texts.documents.drop}>
      <DropZone onFiles={(files) => void takeFiles(files)} onLinks={(links) => void takeLinks(links)} />
      <div class="row-end">
        {bound === null && (
          <Field label={texts.documents.user} placeholder={texts.fields.any} value={user} onChange={setUser} />
        )}
        <Url onUrl={(url) => void takeLinks([url])} />
      </div>
      {problems.map((problem) => (
        <p key={problem} class="notice notice-bad" role="alert">
          {problem}
        </p>
      ))}
    </section>
  );
}

function upload(file: File, user: string): Promise<Accepted> {
  const form = new FormData();
  form.set('user_id', user);
  for (const tag of session.value?.caller?.tags ?? []) form.append('tags', tag);
  form.set('file', file);
  return send('POST', '/memory/ingest', { body: form });
}

/**
 * Returns the web addresses in dropped data. A browser gives dropped links as a text with one address on each line, and
 * lines of comments.
 */
function linksIn(dropped: DataTransfer | null): string[] {
  const lines = dropped?.getData('text/uri-list').split(/\r?\n/) ?? [];
  return lines.filter((line) => /^https?:/.test(line));
}

interface DropZoneProps {
  readonly onFiles: (files: readonly File[]) => void;
  readonly onLinks: (urls: readonly string[]) => void;
}

function DropZone({ onFiles, onLinks }: DropZoneProps) {
  const [isOver, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    // A link that is dragged out of a page may bring an image of itself along as a file.
    const links = linksIn(event.dataTransfer);
    if (links.length > 0) onLinks(links);
    else onFiles(files);
  };
  return (
    <div
      class={`drop ${isOver ? 'drop-over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <b>{texts.documents.drop}</b>
      <label class="button">
        {texts.documents.choose}
        <input
          class="hidden"
          type="file"
          multiple
          onChange={({ currentTarget }) => {
            onFiles([...(currentTarget.files ?? [])]);
            currentTarget.value = '';
          }}
        />
      </label>
      <span class="small">{texts.documents.or}</span>
    </div>
  );
}

function Url({ onUrl }: { onUrl: (url: string) => void }) {
  const [url, setUrl] = useState('');
  const read = (event: Event) => {
    event.preventDefault();
    if (url === '') return;
    onUrl(url);
    setUrl('');
  };
  return (
    <form class="row-end grow" onSubmit={read}>
      <div class="grow">
        <div class="field">
          <label for="document-url">{texts.documents.url}</label>
          <input
            id="document-url"
            class="input"
            type="url"
            placeholder="https://"
            value={url}
            onInput={({ currentTarget }) => setUrl(currentTarget.value)}
          />
        </div>
      </div>
      <button class="button">{texts.documents.read}</button>
    </form>
  );
}
