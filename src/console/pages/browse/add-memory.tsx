import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { Field } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { say } from '../../parts/toast.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import { listOf, TextArea } from '../memory/change-dialogs.tsx';

/**
 * Dialog that adds a memory.
 * @param user owner of the memory unless another is entered; for a bound key, the user of the key
 */
export function AddMemory({ user, onClose, onDone }: { user: string; onClose: () => void; onDone: () => void }) {
  const bound = session.value?.caller?.user_id ?? null;
  const [content, setContent] = useState('');
  const [owner, setOwner] = useState(bound ?? user);
  const [tags, setTags] = useState('');
  const add = async () => {
    const body = {
      content,
      user_id: owner,
      tags: [...new Set([...listOf(tags), ...(session.value?.caller?.tags ?? [])])],
    };
    const { deduplicated } = await send<{ deduplicated?: true }>('POST', '/memory/add', { body });
    say(deduplicated === true ? texts.browse.duplicate : texts.browse.added);
    onDone();
  };
  return (
    <Dialog title={texts.browse.add} action={texts.save} onDo={add} onClose={onClose}>
      <TextArea label={texts.memory.content} value={content} onInput={setContent} />
      <div class="fields">
        {bound === null && <Field label={texts.fields.user} value={owner} onChange={setOwner} />}
        <Field label={texts.fields.tags} value={tags} onChange={setTags} placeholder={texts.fields.commas} />
      </div>
    </Dialog>
  );
}
