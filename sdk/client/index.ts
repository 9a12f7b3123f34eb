/**
 * A typed client of the API, without dependencies: for Node, and for browsers. Its types are generated
 * from the declarations of all built-in plugins (`npm run client`), with the fields that are truly required.
 *
 *     const busbar = createClient({ url: 'http://127.0.0.1:8080', token: process.env.BUSBAR_TOKEN })
 *     const project = await busbar.projects.create({ name: 'Shop', slug: 'shop' })
 *     const applications = await busbar.get('/api/projects/{projectId}/applications', { params: { projectId: project.id } })
 */
export { ApiError, type FieldFault } from './api-error.js'
export type { ApplicationRef } from './applications.js'
export type { LogLine } from './build-log.js'
export { BusbarClient, type ClientOptions, createClient } from './busbar-client.js'
export type { DeploymentRef, StatusChange, Waiting } from './deployments.js'
export { NetworkError } from './network-error.js'
export type { Operations, Schemas } from './operations.generated.js'
export type { Ref } from './projects.js'
export type { Answer, Body, Item, Options, Path } from './types.js'
