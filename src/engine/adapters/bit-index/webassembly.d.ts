/**
 * The part of the WebAssembly interface that the kernels use. TypeScript declares it only in its library for browsers.
 */
declare namespace WebAssembly {
  /** True if the engine accepts a module. */
  function validate(bytes: Uint8Array<ArrayBuffer>): boolean;
  class Memory {
    constructor(descriptor: { readonly initial: number });
    readonly buffer: ArrayBuffer;
    /** Grows the memory by pages of 64 KiB. Views of the earlier buffer are detached. */
    grow(pages: number): number;
  }
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, Memory>>);
    readonly exports: object;
  }
}
