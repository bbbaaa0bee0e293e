import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Waiting } from './basics.tsx';

/**
 * Makes a component whose files are loaded when it is first shown. `lazy` of preact/compat would do the same, and would
 * make each `onChange` an `onInput`: fields would count with every letter, and not when they are left.
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
