/** Dialogs that change or erase a memory. */
import { useId, useState } from 'preact/hooks';
import { go, hrefOf } from '../../address.ts';
import { Refusal, send } from '../../client.ts';
import { Choice, Field } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { texts } from '../../texts.ts';
import type { Deleted, MemoryItem } from '../../types.ts';

interface ChangeProps {
  readonly memory: MemoryItem;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/**
 * Shows the dialog that edits text, title, tags, type and metadata. If the memory was changed meanwhile, the service
 * refuses the change, and the dialog says so.
 */
export function Edit({ memory, onClose, onDone }: ChangeProps) {
  const [content, setContent] = useState(memory.content);
  const [title, setTitle] = useState(memory.title);
  const [tags, setTags] = useState(memory.tags.join(', '));
  const [type, setType] = useState(memory.type ?? '');
  const [metadata, setMetadata] = useState(JSON.stringify(memory.metadata, null, 2));
  const save = async () => {
    const body = {
      ...(content === memory.content ? {} : { content }),
      ...(title === memory.title ? {} : { title }),
      ...(type === (memory.type ?? '') ? {} : { type: type === '' ? null : type }),
      tags: listOf(tags),
      metadata: changesOf(memory.metadata, metadata),
    };
    const headers = { 'if-match': `"${memory.version}"` };
    await send('PATCH', `/memory/${memory.id}`, { body, headers }).catch((error: unknown) => {
      if (error instanceof Refusal && error.status === 409 && /version/.test(error.message))
        throw new Refusal(texts.memory.conflict, 409, 'conflict');
      throw error;
    });
    onDone();
  };
  return (
    <Dialog title={texts.memory.editTitle} action={texts.save} onDo={save} onClose={onClose}>
      <TextArea label={texts.memory.content} value={content} onInput={setContent} />
      <Field label={texts.memory.heading} value={title} onChange={setTitle} />
      <div class="fields">
        <Field label={texts.fields.tags} value={tags} onChange={setTags} placeholder={texts.fields.commas} />
        <Field label={texts.memory.type} value={type} onChange={setType} />
      </div>
      <TextArea label={texts.memory.metadata} value={metadata} onInput={setMetadata} isCode />
    </Dialog>
  );
}

/**
 * Shows the dialog that states the sector of a memory in its metadata. The tenant's classifier is trained on such
 * statements.
 */
export function StateSector({ memory, onClose, onDone }: ChangeProps) {
  const stated = memory.metadata['sector'];
  const [sector, setSector] = useState(typeof stated === 'string' ? stated : memory.primary_sector);
  const save = async () => {
    const body = { metadata: { sector: sector === '' ? null : sector } };
    await send('PATCH', `/memory/${memory.id}`, { body, headers: { 'if-match': `"${memory.version}"` } });
    onDone();
  };
  return (
    <Dialog title={texts.memory.sectorTitle} action={texts.save} onDo={save} onClose={onClose}>
      <p class="muted">{texts.memory.sectorAbout}</p>
      <Choice
        label={texts.memory.sector}
        value={sector}
        onChange={setSector}
        options={[...Object.entries(texts.memory.sectors), ['', texts.memory.unstatedSector]]}
      />
    </Dialog>
  );
}

/** Splits a text at commas into entries without surrounding blanks; empty entries and repetitions are left out. */
export function listOf(text: string): string[] {
  return [
    ...new Set(
      text
        .split(',')
        .map((entry) => entry.trim())
        .filter(Boolean),
    ),
  ];
}

/**
 * Returns metadata changes as PATCH takes them: all keys of the edited text, and null for each key that was removed.
 * @throws Refusal for a text that is not JSON or not an object
 */
function changesOf(before: object, text: string): object {
  let after: unknown;
  try {
    after = JSON.parse(text === '' ? '{}' : text);
  } catch (error) {
    throw new Refusal(`${texts.memory.metadata}: ${(error as Error).message}`, 0, 'invalid');
  }
  if (typeof after !== 'object' || after === null || Array.isArray(after))
    throw new Refusal(`${texts.memory.metadata}: ${texts.memory.json}`, 0, 'invalid');
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  return { ...after, ...Object.fromEntries(removed.map((key) => [key, null])) };
}

interface TextAreaProps {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly isCode?: boolean;
}

/** Shows a labelled field for several lines of text; with `isCode` it has the style of code and no spell check. */
export function TextArea({ label, value, onInput, isCode = false }: TextAreaProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class={`input ${isCode ? 'input-code' : ''}`}
        dir="auto"
        spellcheck={!isCode}
        value={value}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
    </div>
  );
}

/** Shows the dialog that adds a memory which supersedes this one, and opens the new one afterwards. */
export function Supersede({ memory, onClose, onDone }: ChangeProps) {
  const [content, setContent] = useState(memory.content);
  const save = async () => {
    const { user_id: user, session_id: session, tags, type } = memory;
    const added = await send<{ id: string }>('POST', '/memory/add', {
      body: { content, user_id: user, session_id: session, tags, type, supersedes: memory.id },
    });
    onDone();
    go(hrefOf(['memory', added.id]));
  };
  return (
    <Dialog title={texts.memory.supersedeTitle} action={texts.memory.supersede} onDo={save} onClose={onClose}>
      <p class="muted">{texts.memory.supersedeAbout}</p>
      <TextArea label={texts.memory.content} value={content} onInput={setContent} />
    </Dialog>
  );
}

/** Shows the dialog that states that another memory contradicts this one, and optionally which of the two is right. */
export function Contradict({ memory, onClose, onDone }: ChangeProps) {
  const [other, setOther] = useState('');
  const [winner, setWinner] = useState('');
  const save = async () => {
    const chosen = winner === 'this' ? memory.id : winner === 'other' ? other.trim() : undefined;
    await send('POST', '/memory/contradict', {
      body: { a: memory.id, b: other.trim(), ...(chosen === undefined ? {} : { winner: chosen }) },
    });
    onDone();
  };
  return (
    <Dialog title={texts.memory.contradictTitle} action={texts.memory.contradict} onDo={save} onClose={onClose}>
      <p class="muted">{texts.memory.contradictAbout}</p>
      <Field label={texts.memory.otherId} value={other} onChange={setOther} />
      <Choice
        label={texts.memory.winner}
        value={winner}
        onChange={setWinner}
        options={[
          ['', texts.memory.undecided],
          ['this', texts.memory.this],
          ['other', texts.memory.other],
        ]}
      />
    </Dialog>
  );
}

interface ForgetProps extends Omit<ChangeProps, 'onDone'> {
  readonly onForgotten: (receipt: Deleted) => void;
}

/** Shows the dialog that erases a memory with all that was derived from it. */
export function Forget({ memory, onClose, onForgotten }: ForgetProps) {
  const forget = async () => onForgotten(await send<Deleted>('DELETE', `/memory/${memory.id}`));
  return (
    <Dialog title={texts.memory.forgetTitle} action={texts.memory.forget} isBad onDo={forget} onClose={onClose}>
      <p>{texts.memory.forgetAbout}</p>
    </Dialog>
  );
}
