import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Waiting } from './basics.tsx';

/**
 * Makes a component whose files are loaded when it is first shown. `load` must not reject. It replaces `lazy` of
 * preact/compat, which would turn each `onChange` into `onInput`, so that fields took effect at each letter instead of
 * when they lose the focus.
 */
export function lazily<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazily(props: Props) {
    const [Component, setComponent] = useState(() => loaded);
    useEffect(() => {
      if (Component !== undefined) return;
      void load().then((component) => {
        loaded = component;
        setComponent(() => component);
      });
    }, []);
    return Component === undefined ? <Waiting /> : <Component {...props} />;
  };
}
