import { texts } from '../texts.ts';
import { say } from './toast.tsx';

interface SecretProps {
  readonly title: string;
  readonly about: string;
  readonly secret: string;
  readonly onClose: () => void;
}

/** Shows a new secret, which the service does not return again, until the notice is closed. */
export function Secret({ title, about, secret, onClose }: SecretProps) {
  return (
    <section class="notice notice-good stack-tight" role="status" aria-label={title}>
      <b>{title}</b>
      <p>{about}</p>
      <code class="secret">{secret}</code>
      <div class="row">
        <CopyButton text={secret} isFirst />
        <button class="button button-small" onClick={onClose}>
          {texts.close}
        </button>
      </div>
    </section>
  );
}

/**
 * Shows a button that copies a text, and says so if it could not. Browsers offer the clipboard to pages of HTTPS and of
 * localhost only.
 */
export function CopyButton({ text, isFirst = false }: { text: string; isFirst?: boolean }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say(texts.code.copied);
    } catch {
      say(texts.code.notCopied);
    }
  };
  return (
    <button class={`button button-small ${isFirst ? 'button-first' : ''}`} onClick={() => void copy()}>
      {texts.code.copy}
    </button>
  );
}
