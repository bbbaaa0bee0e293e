import { useState } from 'preact/hooks';
import { Refusal, send } from '../../client.ts';
import { Choice, Failed, Waiting } from '../../parts/basics.tsx';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import { TextArea } from '../memory/change-dialogs.tsx';

type Mode = 'off' | 'mark' | 'redact' | 'refuse';
interface Privacy {
  readonly secrets: Mode;
  readonly personal: Mode;
}
const MODES: readonly Mode[] = ['off', 'mark', 'redact', 'refuse'];

/** Shows the tenant's defaults for queries, and its privacy policy. */
export function Settings() {
  const { data, error, reload } = useLoad('settings', async (signal) => {
    const [retrieval, privacy] = await Promise.all([
      send<object>('GET', '/settings/retrieval', { signal }),
      send<Privacy>('GET', '/settings/privacy', { signal }),
    ]);
    return { retrieval, privacy };
  });
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <div class="halves">
      <Retrieval key={JSON.stringify(data.retrieval)} retrieval={data.retrieval} onChange={reload} />
      <PrivacyPolicy privacy={data.privacy} onChange={reload} />
    </div>
  );
}

function Retrieval({ retrieval, onChange }: { retrieval: object; onChange: () => void }) {
  const [text, setText] = useState(JSON.stringify(retrieval, null, 2));
  const save = async (event: Event) => {
    event.preventDefault();
    try {
      await send('PUT', '/settings/retrieval', { body: parsed(text) });
      say(texts.admin.changed);
      onChange();
    } catch (error) {
      sayRefusal(error);
    }
  };
  return (
    <form class="card-flat stack" onSubmit={(event) => void save(event)}>
      <h2>{texts.admin.retrieval}</h2>
      <p class="muted">{texts.admin.retrievalAbout}</p>
      <TextArea label={texts.admin.json} value={text} onInput={setText} isCode />
      <div>
        <button class="button button-first">{texts.save}</button>
      </div>
    </form>
  );
}

/**
 * Parses JSON.
 * @throws Refusal for a text that is not JSON
 */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal((error as Error).message, 0, 'invalid');
  }
}

function PrivacyPolicy({ privacy, onChange }: { privacy: Privacy; onChange: () => void }) {
  const set = (changes: Partial<Privacy>) =>
    void send('PUT', '/settings/privacy', { body: { ...privacy, ...changes } }).then(() => {
      say(texts.admin.changed);
      onChange();
    }, sayRefusal);
  return (
    <section class="card-flat stack">
      <h2>{texts.admin.privacy}</h2>
      <p class="muted">{texts.admin.privacyAbout}</p>
      <Choice
        label={texts.admin.secrets}
        value={privacy.secrets}
        options={MODES}
        onChange={(mode) => set({ secrets: mode as Mode })}
      />
      <Choice
        label={texts.admin.personal}
        value={privacy.personal}
        options={MODES}
        onChange={(mode) => set({ personal: mode as Mode })}
      />
    </section>
  );
}
