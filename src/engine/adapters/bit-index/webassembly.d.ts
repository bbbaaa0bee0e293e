/** The part of the WebAssembly interface that the kernels use: TypeScript knows it only together with a browser's. */
declare namespace WebAssembly {
  /** Whether the engine takes a module. */
  function validate(bytes: Uint8Array<ArrayBuffer>): boolean;
  class Memory {
    constructor(descriptor: { readonly initial: number });
    readonly buffer: ArrayBuffer;
    /** By pages of 64 KiB. Views of the buffer before are detached. */
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
