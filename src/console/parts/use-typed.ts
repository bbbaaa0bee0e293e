import { useRef, useState } from 'preact/hooks';

/**
 * Keeps the typed text of a field until the value that the field stands for changes. The change is detected during
 * rendering, not in an effect, since an effect would run after the paint and undo what was typed before it.
 * @returns the text of the field, and a function that sets it
 */
export function useTyped(value: string): readonly [text: string, type: (text: string) => void] {
  const [, draw] = useState(0);
  const typed = useRef({ value, text: value });
  if (typed.current.value !== value) typed.current = { value, text: value };
  const type = (text: string) => {
    typed.current = { ...typed.current, text };
    draw((times) => times + 1);
  };
  return [typed.current.text, type];
}
