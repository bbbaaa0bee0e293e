import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { fixed } from '../../parts/format.ts';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { Deleted, MemoryItem } from '../../types.ts';
import { Contradict, Edit, Forget, StateSector, Supersede } from './change-dialogs.tsx';

interface ActionsProps {
  readonly memory: MemoryItem;
  readonly onChange: () => void;
  readonly onForgotten: (receipt: Deleted) => void;
}

type Asking = 'edit' | 'sector' | 'supersede' | 'contradict' | 'forget';

/** Shows the buttons that change or erase a memory, with their dialogs; nothing for callers who may not write. */
export function Actions({ memory, onChange, onForgotten }: ActionsProps) {
  const [asking, setAsking] = useState<Asking>();
  if (!may('write')) return null;
  const close = () => setAsking(undefined);
  const done = (message: string) => {
    say(message);
    onChange();
  };
  const patch = (body: object, message: string) =>
    void send('PATCH', `/memory/${memory.id}`, { body }).then(() => done(message), sayRefusal);
  const reinforce = () =>
    void send<{ salience: number }>('POST', '/memory/reinforce', { body: { id: memory.id } }).then(
      ({ salience }) => done(texts.memory.reinforced(fixed(salience))),
      sayRefusal,
    );
  const isPinned = memory.importance === 1;
  const isArchived = memory.status === 'archived';
  return (
    <div class="row">
      <Button onClick={() => setAsking('edit')}>{texts.memory.edit}</Button>
      <Button onClick={() => setAsking('sector')}>{texts.memory.sector}</Button>
      <Button onClick={() => setAsking('supersede')}>{texts.memory.supersede}</Button>
      <Button onClick={() => setAsking('contradict')}>{texts.memory.contradict}</Button>
      <Button onClick={reinforce}>{texts.memory.reinforce}</Button>
      <Button
        onClick={() =>
          patch({ importance: isPinned ? null : 1 }, isPinned ? texts.memory.unpinned : texts.memory.pinned)
        }
      >
        {isPinned ? texts.memory.unpin : texts.memory.pin}
      </Button>
      {(isArchived || memory.status === 'active') && (
        <Button
          onClick={() =>
            patch(
              { status: isArchived ? 'active' : 'archived' },
              isArchived ? texts.memory.restored : texts.memory.archived,
            )
          }
        >
          {isArchived ? texts.memory.restore : texts.memory.archive}
        </Button>
      )}
      <Button isBad onClick={() => setAsking('forget')}>
        {texts.memory.forget}
      </Button>
      {asking === 'edit' && <Edit memory={memory} onClose={close} onDone={() => done(texts.memory.saved)} />}
      {asking === 'sector' && (
        <StateSector memory={memory} onClose={close} onDone={() => done(texts.memory.sectorSaved)} />
      )}
      {asking === 'supersede' && (
        <Supersede memory={memory} onClose={close} onDone={() => done(texts.memory.superseded)} />
      )}
      {asking === 'contradict' && (
        <Contradict memory={memory} onClose={close} onDone={() => done(texts.memory.contradicted)} />
      )}
      {asking === 'forget' && <Forget memory={memory} onClose={close} onForgotten={onForgotten} />}
    </div>
  );
}

function Button(props: { onClick: () => void; isBad?: boolean; children: string }) {
  return (
    <button class={`button button-small ${props.isBad === true ? 'button-bad' : ''}`} onClick={props.onClick}>
      {props.children}
    </button>
  );
}
