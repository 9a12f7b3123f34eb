/** How a worker thread is started from one of our modules. */
interface WorkerEntry {
  readonly entry: URL | string
  readonly eval?: boolean
}

/**
 * The worker `name` beside the module whose `import.meta.url` is given. Compiled, it lies there as
 * JavaScript; from source, a worker does not inherit its parent's TypeScript loader.
 */
export function workerEntry(name: string, beside: string): WorkerEntry {
  if (!beside.endsWith('.ts')) return { entry: new URL(`./${name}.js`, beside) }
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const source = JSON.stringify(new URL(`./${name}.ts`, beside).href)
  return {
    entry: `import(${loader}).then(({ register }) => { register(); return import(${source}) })`,
    eval: true
  }
}
