import { signal } from '@preact/signals';
import { Refusal } from '../client.ts';
import { texts } from '../texts.ts';

/** Time for which a message is shown (ms). */
const SHOWN_MS = 6_000;

const message = signal('');
let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows a short message, which replaces the previous one and is announced by screen readers. */
export function say(text: string): void {
  clearTimeout(timer);
  message.value = text;
  timer = setTimeout(() => (message.value = ''), SHOWN_MS);
}

/** Shows the reason of a failed request as a message. */
export function sayRefusal(error: unknown): void {
  say(error instanceof Refusal ? [error.message, ...error.errors].join(' ') : String(error));
}

/** Shows the message of `say` until its time is over or the user closes it. A page contains this component once. */
export function Toast() {
  return (
    <div role="status" aria-live="polite">
      {message.value !== '' && (
        <div class="toast">
          <span class="grow">{message.value}</span>
          <button class="button button-plain" onClick={() => (message.value = '')}>
            {texts.close}
          </button>
        </div>
      )}
    </div>
  );
}
