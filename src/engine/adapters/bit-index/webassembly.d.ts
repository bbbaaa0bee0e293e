/**
 * The part of the WebAssembly interface that the kernels use. TypeScript declares it only in its library for browsers.
 */
declare namespace WebAssembly {
  /** Tells whether the engine accepts a module. */
  function validate(bytes: Uint8Array<ArrayBuffer>): boolean;
  class Memory {
    constructor(descriptor: { readonly initial: number; readonly maximum: number; readonly shared: true });
    readonly buffer: SharedArrayBuffer;
    /** Grows the memory by a number of pages of 64 KiB. `buffer` is afterwards another object over the same bytes. */
    grow(pages: number): number;
  }
  class Global {
    constructor(descriptor: { readonly value: 'i32' }, value: number);
  }
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, Memory | Global>>);
    readonly exports: object;
  }
}
