import { randomUUID } from 'node:crypto'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type ImageService, loadedPrefix } from 'busbar/api/images'
import type { Test } from 'tap'
import type { FetchedImage, FetchedImages } from '../registry/fetched-images.js'
import { fullRepository, versionOf } from '../registry/local-image.js'
import { DeploymentAccounts } from '../registry/pull-accounts.js'
import { hostedRegistries, type Registries } from '../registry/registries.js'
import { clock, log } from './kit.js'
import { policyOf } from './policy-of.js'

/** What was fetched, in memory. `begun` gets the names that were given. */
export function fetchedInMemory(begun: string[] = []): FetchedImages {
  const kept: Array<FetchedImage & { readonly version: string }> = []
  const open = (applicationId: string) =>
    kept.filter(({ holder }) => holder === '' || holder === applicationId)
  return {
    find: async (applicationId, name) =>
      open(applicationId).findLast(
        ({ repository, version }) => repository === fullRepository(name) && version === versionOf(name)
      ),
    withFirstLayer: async (holder, layer) => open(holder).filter(({ layers }) => layers[0] === layer),
    isOpenTo: async (applicationId, names) =>
      open(applicationId).some(({ handle }) => names.includes(handle)),
    begin: async () => {
      const name = `${loadedPrefix}lab-${randomUUID()}:latest`
      begun.push(name)
      return { id: randomUUID(), handle: name }
    },
    renew: async () => {},
    abandon: async () => {},
    ended: async () => {},
    isBeingRemoved: async () => false,
    isLoading: async () => false,
    settle: async (image, { name }) => {
      for (const version of [versionOf(name), image.digest]) kept.push({ ...image, version })
    },
    keep: async () => {},
    kept: async () => [],
    drop: async () => {},
    forget: async () => {},
    nextToRemove: async () => undefined,
    removed: async () => {},
    stays: async () => {}
  }
}

/** Where every host name is this machine, under `privateHosts`. */
const registriesHere = (runtime: Pick<ContainerRuntime, 'info'>, privateHosts = 'allow'): Registries =>
  hostedRegistries({
    rules: {
      hostPolicy: policyOf(privateHosts),
      lookup: async () => [{ address: '127.0.0.1', family: 4 }]
    },
    clock,
    log,
    runtime
  })

/** What builds use of an engine: one that runs containers and keeps images. */
export type Engine = ContainerRuntime & ImageService

/** What builders of Dockerfiles get where only the classic builder is to be used. */
export const withoutBuildEngines = {
  availableEngines: {
    choose: async () => ({ kind: 'classic', note: 'built by the classic builder' }) as const,
    noteNotStarted: () => {}
  },
  engines: {
    use: async () => {
      throw new Error('there are no build engines here')
    }
  },
  engineUsage: { during: async <T>(_build: object, run: () => Promise<T>): Promise<T> => await run() }
}

/** Neither a project nor the installation has any. */
export const noAccounts = new DeploymentAccounts({ get: () => undefined })

/** What a build needs beside the engine. */
export function imageParts(t: Test, engine: Engine, privateHosts?: string) {
  const begun: string[] = []
  t.teardown(async () => {
    for (const name of begun) await engine.removeImage(name).catch(() => undefined)
  })
  return {
    imageService: engine,
    registries: registriesHere(engine, privateHosts),
    accounts: noAccounts,
    fetched: fetchedInMemory(begun),
    clock,
    log,
    room: { reserve: async () => ({ end: () => {} }) },
    formerImages: { isOfOthers: async () => false }
  }
}
