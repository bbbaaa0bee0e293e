import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { texts } from '../texts.ts';
import { sayRefusal } from './toast.tsx';

interface DialogProps {
  readonly title: string;
  /** Label of the button that carries out the action. */
  readonly action: string;
  /** Whether the action removes or revokes something, so that its button has the colour of a warning. */
  readonly isBad?: boolean;
  /**
   * Carries out the action. The dialog closes afterwards; if the promise rejects, it shows the reason and stays open.
   */
  readonly onDo: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Shows a modal dialog with an action and a cancel button. Escape closes it. */
export function Dialog({ title, action, isBad = false, onDo, onClose, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const id = useId();
  useEffect(() => ref.current?.showModal(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await onDo();
      onClose();
    } catch (error) {
      sayRefusal(error);
      setBusy(false);
    }
  };
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <h2 id={id}>{title}</h2>
        {children}
        <div class="row">
          <button class={`button ${isBad ? 'button-bad' : 'button-first'}`} disabled={isBusy}>
            {action}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {texts.cancel}
          </button>
        </div>
      </form>
    </dialog>
  );
}
