import { useId, useState } from 'preact/hooks';
import { address, go, hrefOf } from '../address.ts';
import { Refusal } from '../client.ts';
import logo from '../cairn.svg';
import { rememberView, session, signIn } from '../session.ts';
import { texts } from '../texts.ts';

/**
 * Page that asks for a key and exchanges it for a session. The key is sent to the service once, and is stored neither
 * in the page nor in the browser.
 */
export function SignIn() {
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState(
    texts.signIn.providerProblems[address.value.params.get('problem') ?? ''] ?? '',
  );
  const id = useId();
  const enter = async (event: Event) => {
    event.preventDefault();
    setProblem('');
    try {
      await signIn(key.trim());
      if (address.value.page === 'sign-in') go(hrefOf('ask'), { replace: true });
    } catch (error) {
      setProblem(error instanceof Refusal ? reasonOf(error) : String(error));
    }
  };
  return (
    <main class="gate">
      <form class="card" onSubmit={(event) => void enter(event)}>
        <span class="brand">
          <img src={logo} alt="" />
          Cairn
        </span>
        <h1>{texts.signIn.title}</h1>
        <p class="muted">{texts.signIn.about}</p>
        <Provider />
        <div class="field">
          <label for={id}>{texts.signIn.key}</label>
          <input
            id={id}
            class="input input-large mono"
            type="password"
            autocomplete="current-password"
            autofocus={session.value?.identity_provider == null}
            required
            value={key}
            aria-describedby={`${id}-problem`}
            aria-invalid={problem !== ''}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </div>
        <div id={`${id}-problem`} role="alert">
          {problem !== '' && <p class="notice notice-bad">{problem}</p>}
        </div>
        <button class="button button-first">{texts.signIn.action}</button>
        <details>
          <summary>{texts.signIn.noKey}</summary>
          <p class="muted">{texts.signIn.makeKey}</p>
          <pre>cairn keys create --role read --name console</pre>
        </details>
      </form>
    </main>
  );
}

/** Shows a link to the identity provider for signing in there; nothing if none is configured. */
function Provider() {
  const host = session.value?.identity_provider ?? null;
  if (host === null) return null;
  return (
    <>
      <a class="button button-first" href="./console/oidc" onClick={rememberView}>
        {texts.signIn.provider(host)}
      </a>
      <p class="small muted">{texts.signIn.orKey}</p>
    </>
  );
}

function reasonOf({ code, message }: Refusal): string {
  if (code === 'unauthenticated') return texts.signIn.wrong;
  if (code === 'forbidden' && message.includes('yours has add')) return texts.signIn.addsOnly;
  return message;
}
