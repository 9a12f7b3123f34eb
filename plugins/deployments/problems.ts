import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  applicationMissing: [404, 'E_APPLICATION_NOT_FOUND', 'application {applicationId} does not exist'],
  unseen: [404, 'E_NOT_FOUND', 'not found'],
  deploymentMissing: [404, 'E_DEPLOYMENT_NOT_FOUND', 'deployment {deploymentId} does not exist'],
  active: [409, 'E_DEPLOYMENT_ACTIVE', 'a deployment is already in progress for this application'],
  noSource: [409, 'E_DEPLOYMENT_NO_SOURCE', 'application {name} has no source yet', 'set {field} first'],
  nothingToReload: [
    409,
    'E_DEPLOYMENT_NOTHING_TO_RELOAD',
    'application {name} has no successful deployment whose image could be started again',
    'deploy it first'
  ],
  imageSourceRebuild: [
    400,
    'E_DEPLOYMENT_REBUILD_IMAGE',
    'application {name} runs an image and is not built from a commit',
    'deploy it to pull the image again'
  ],
  noCommit: [
    409,
    'E_DEPLOYMENT_NO_COMMIT',
    'application {name} has no successful deployment with a commit that could be built again',
    'deploy it first'
  ],
  rollbackForeign: [
    400,
    'E_ROLLBACK_FOREIGN',
    'deployment_id {deploymentId} is not a deployment of this application',
    { field: 'deployment_id' }
  ],
  rollbackUnsuccessful: [
    400,
    'E_ROLLBACK_UNSUCCESSFUL',
    'deployment {deploymentId} ended {status}: only a successful one can be rolled back to',
    { field: 'deployment_id' }
  ],
  rollbackNoImage: [
    400,
    'E_ROLLBACK_NO_IMAGE',
    'deployment {deploymentId} has no image that could be started again',
    { field: 'deployment_id' }
  ],
  imageGone: [
    409,
    'E_DEPLOYMENT_IMAGE_GONE',
    'image {image} of deployment {deploymentId} is no longer on this machine',
    'deploy again instead'
  ],
  notActive: [
    409,
    'E_DEPLOYMENT_NOT_ACTIVE',
    'deployment {deploymentId} has ended already ({status}): there is nothing to cancel'
  ],
  tooLate: [
    409,
    'E_DEPLOYMENT_SWITCHED',
    'deployment {deploymentId} is healthy and is taking over the traffic: it can no longer be cancelled; roll back instead'
  ],
  badFilter: [400, 'E_DEPLOYMENT_FILTER', '{field} must be an RFC 3339 time, such as 2026-01-31T12:00:00Z'],
  badId: [400, 'E_DEPLOYMENT_FILTER', '{field} must be a lowercase hyphenated UUID'],
  badMountPath: [400, 'E_MOUNT_PATH', 'mount_path: {path} {fault}', { field: 'mount_path' }],
  mountPathTaken: [
    409,
    'E_MOUNT_PATH_TAKEN',
    'mount_path: a {kind} is mounted at {path} already, and {wanted} cannot be beside it',
    { field: 'mount_path', remedy: 'choose another path, or remove the other one first' }
  ],
  hookMissing: [404, 'E_DEPLOY_HOOK_NOT_FOUND', 'not found'],
  noHook: [
    404,
    'E_DEPLOY_HOOK_NONE',
    'the application has no deploy hook',
    'make one with POST …/deploy-hook'
  ]
})
