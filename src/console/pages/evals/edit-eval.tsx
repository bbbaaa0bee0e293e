import { useState } from 'preact/hooks';
import { Refusal, send } from '../../client.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { fixed } from '../../parts/format.ts';
import { say } from '../../parts/toast.tsx';
import { texts } from '../../texts.ts';
import { TextArea } from '../memory/change-dialogs.tsx';

/** Formats a share from 0 to 1; `–` if nothing could be measured. */
export const shareOf = (value: number | null | undefined) => (value == null ? '–' : fixed(value));

/** Dialog that edits an evaluation set as JSON, and stores it in place of the one of the same name. */
export function EditEval({ text: first, onClose, onDone }: { text: string; onClose: () => void; onDone: () => void }) {
  const [text, setText] = useState(first);
  const save = async () => {
    await send('POST', '/evals', { body: parsed(text) });
    say(texts.evals.saved);
    onDone();
  };
  return (
    <Dialog title={texts.evals.make} action={texts.save} onDo={save} onClose={onClose}>
      <TextArea label={texts.evals.json} value={text} onInput={setText} isCode />
    </Dialog>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal((error as Error).message, 0, 'invalid');
  }
}
