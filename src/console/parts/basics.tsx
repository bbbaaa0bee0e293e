/** Basic components of the pages. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { hrefOf } from '../address.ts';
import type { Refusal } from '../client.ts';
import { texts } from '../texts.ts';
import type { Sector } from '../types.ts';
import { centre } from './centre.ts';
import { ago, dateTime, fixed, percent, shortId } from './format.ts';
import { useTyped } from './use-typed.ts';

interface PageHeadProps {
  readonly title: ComponentChildren;
  readonly about?: string;
  readonly children?: ComponentChildren;
}

/** Shows the head of a page: its title, its purpose, and its buttons. */
export function PageHead({ title, about, children }: PageHeadProps) {
  return (
    <header class="page-head">
      <div class="stack-tight">
        <h1>{title}</h1>
        {about !== undefined && <p>{about}</p>}
      </div>
      {children !== undefined && <div class="row">{children}</div>}
    </header>
  );
}

/**
 * Shows a notice where there is nothing to show: an empty list, something that is gone, a page that this key may not
 * see. `children` says what can be done.
 */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Shows why a request failed, with a button to try again if `retry` is given. */
export function Failed({ error, retry }: { error: Refusal; retry?: () => void }) {
  return (
    <div class="notice notice-bad between" role="alert">
      <span>
        {error.message} {error.errors.join(' ')}
      </span>
      {retry !== undefined && (
        <button class="button button-small" onClick={retry}>
          {texts.tryAgain}
        </button>
      )}
    </div>
  );
}

/** Shows placeholder lines while something is loaded. */
export function Waiting({ lines = 3 }: { lines?: number }) {
  return (
    <div class="stack-tight" role="status">
      <span class="hidden">{texts.loading}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="skeleton" />
      ))}
    </div>
  );
}

/** Shows the name of a sector in its colour. */
export function SectorName({ sector }: { sector: Sector }) {
  return <span class={`sector of-${sector}`}>{sector}</span>;
}

/** Shows a time (Unix ms) relative to now; the exact time appears as a tooltip. */
export function Time({ at }: { at: number }) {
  return (
    <time class="nowrap" dateTime={new Date(at).toISOString()} title={dateTime(at)}>
      {ago(at)}
    </time>
  );
}

/** Shows a value of 0 to 1 as a bar and a number. */
export function Meter({ value, name, sector }: { value: number; name: string; sector?: Sector }) {
  return (
    <span class={`nowrap ${sector === undefined ? '' : `of-${sector}`}`} title={`${name} ${fixed(value, 3)}`}>
      <span class="meter" aria-hidden="true">
        <i style={{ width: percent(value).replace(' ', '') }} />
      </span>{' '}
      <span class="number small">
        <span class="hidden">{name} </span>
        {fixed(value)}
      </span>
    </span>
  );
}

/** Shows a link to a memory, with `children` as its text or else the last eight characters of the id. */
export function MemoryLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return <a href={hrefOf(['memory', id])}>{children ?? <span class="mono">{shortId(id)}</span>}</a>;
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly type?: 'text' | 'number' | 'password' | 'datetime-local' | 'date' | 'search';
  readonly placeholder?: string | undefined;
  readonly list?: readonly string[] | undefined;
  readonly min?: number;
  readonly max?: number;
  readonly step?: number;
  /** Shows the label to screen readers only, for fields whose label is visible elsewhere. */
  readonly isBare?: boolean;
}

/** Shows a labelled input. A typed value takes effect when the field loses the focus or Enter is pressed. */
export function Field({ label, value, onChange, list, isBare = false, ...rest }: FieldProps) {
  const id = useId();
  // The text that is being typed is kept here, since the page around the input may be drawn anew meanwhile.
  const [text, setText] = useTyped(value);
  // The attributes are typed as a plain object: Preact's types refuse a `type` that is only known at run time.
  const attributes: object = { ...rest, ...(list === undefined ? {} : { list: `${id}-list` }) };
  return (
    <div class={`field ${rest.type === 'datetime-local' ? 'wide' : ''}`}>
      <label for={id} class={isBare ? 'hidden' : ''}>
        {label}
      </label>
      <input
        {...attributes}
        id={id}
        class="input"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      />
      {list !== undefined && (
        <datalist id={`${id}-list`}>
          {list.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
    </div>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Values with the labels that are shown for them. A string is both value and label. */
  readonly options: readonly (string | readonly [string, string])[];
}

/** Shows a labelled select element. */
export function Choice({ label, value, onChange, options }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} class="input" value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {options.map((option) => {
          const [key, words] = typeof option === 'string' ? [option, option] : option;
          return (
            <option key={key} value={key}>
              {words}
            </option>
          );
        })}
      </select>
    </div>
  );
}

/** Shows a checkbox with its label. */
export function Check(props: { label: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={({ currentTarget }) => props.onChange(currentTarget.checked)}
      />
      {props.label}
    </label>
  );
}

interface TabsProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly (readonly [string, string])[];
}

/** Shows a row of tabs. The left and right arrow keys choose another tab, and the chosen one is scrolled into view. */
export function Tabs({ label, value, onChange, options }: TabsProps) {
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => centre(row.current, row.current?.querySelector('[aria-selected=true]')), [value]);
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    const at = options.findIndex(([key]) => key === value);
    const next = options[(at + step + options.length) % options.length]!;
    onChange(next[0]);
    const tabs = (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role=tab]');
    tabs[options.indexOf(next)]?.focus();
  };
  return (
    <div ref={row} class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {options.map(([key, words]) => (
        <button
          key={key}
          role="tab"
          aria-selected={key === value}
          tabIndex={key === value ? 0 : -1}
          onClick={() => onChange(key)}
        >
          {words}
        </button>
      ))}
    </div>
  );
}
