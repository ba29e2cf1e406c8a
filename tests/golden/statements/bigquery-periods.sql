WITH `discreet_rows` AS (
  SELECT
    *
  FROM (
    SELECT
      `t5`.`who`,
      `t5`.`item`,
      `t3`.`number` AS `grp`
    FROM (
      SELECT
        CAST(`t0`.`customer` AS BYTES) AS `who`,
        `t0`.`number` AS `item`,
        COALESCE(
          (
            CAST(NULL AS INT64) + 719163
          ) * 172800,
          (
            (
              UNIX_SECONDS(`t0`.`moment`) + 62135683200
            ) * 2
          ) + 1
        ) AS `key0`
      FROM `mart`.`sales` AS `t0`
    ) AS `t5`
    INNER JOIN (
      SELECT
        CAST(`key` AS INT64) AS `key`,
        CAST(`low` AS INT64) AS `low`,
        CAST(`high` AS INT64) AS `high`,
        CAST(`number` AS INT64) AS `number`
      FROM UNNEST([
        STRUCT(739698 AS `key`, 127819814400 AS `low`, 127819814400 AS `high`, 0 AS `number`),
        STRUCT(739699 AS `key`, 127819987200 AS `low`, 127819987200 AS `high`, 0 AS `number`),
        STRUCT(739700 AS `key`, 127820160000 AS `low`, 127820160000 AS `high`, 0 AS `number`),
        STRUCT(739701 AS `key`, 127820332800 AS `low`, 127820332800 AS `high`, 0 AS `number`),
        STRUCT(739702 AS `key`, 127820505600 AS `low`, 127820505600 AS `high`, 0 AS `number`),
        STRUCT(739703 AS `key`, 127820678400 AS `low`, 127820678400 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127820851200 AS `low`, 127820851200 AS `high`, 0 AS `number`),
        STRUCT(739705 AS `key`, 127821024000 AS `low`, 127821024000 AS `high`, 1 AS `number`),
        STRUCT(739706 AS `key`, 127821196800 AS `low`, 127821196800 AS `high`, 1 AS `number`),
        STRUCT(739707 AS `key`, 127821369600 AS `low`, 127821369600 AS `high`, 1 AS `number`),
        STRUCT(739708 AS `key`, 127821542400 AS `low`, 127821542400 AS `high`, 1 AS `number`),
        STRUCT(739709 AS `key`, 127821715200 AS `low`, 127821715200 AS `high`, 1 AS `number`),
        STRUCT(739710 AS `key`, 127821888000 AS `low`, 127821888000 AS `high`, 1 AS `number`),
        STRUCT(739711 AS `key`, 127822060800 AS `low`, 127822060800 AS `high`, 1 AS `number`),
        STRUCT(739697 AS `key`, 127819807201 AS `low`, 127819814399 AS `high`, 0 AS `number`),
        STRUCT(739698 AS `key`, 127819814401 AS `low`, 127819987199 AS `high`, 0 AS `number`),
        STRUCT(739699 AS `key`, 127819987201 AS `low`, 127820159999 AS `high`, 0 AS `number`),
        STRUCT(739700 AS `key`, 127820160001 AS `low`, 127820332799 AS `high`, 0 AS `number`),
        STRUCT(739701 AS `key`, 127820332801 AS `low`, 127820505599 AS `high`, 0 AS `number`),
        STRUCT(739702 AS `key`, 127820505601 AS `low`, 127820678399 AS `high`, 0 AS `number`),
        STRUCT(739703 AS `key`, 127820678401 AS `low`, 127820851199 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127820851201 AS `low`, 127820858399 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127820858401 AS `low`, 127821009599 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127821009601 AS `low`, 127821023999 AS `high`, 1 AS `number`),
        STRUCT(739705 AS `key`, 127821024001 AS `low`, 127821196799 AS `high`, 1 AS `number`),
        STRUCT(739706 AS `key`, 127821196801 AS `low`, 127821369599 AS `high`, 1 AS `number`),
        STRUCT(739707 AS `key`, 127821369601 AS `low`, 127821542399 AS `high`, 1 AS `number`),
        STRUCT(739708 AS `key`, 127821542401 AS `low`, 127821715199 AS `high`, 1 AS `number`),
        STRUCT(739709 AS `key`, 127821715201 AS `low`, 127821887999 AS `high`, 1 AS `number`),
        STRUCT(739710 AS `key`, 127821888001 AS `low`, 127822060799 AS `high`, 1 AS `number`),
        STRUCT(739711 AS `key`, 127822060801 AS `low`, 127822219199 AS `high`, 1 AS `number`)
      ]) AS listed
    ) AS `t3`
      ON CAST(FLOOR(ieee_divide(`t5`.`key0`, 172800)) AS INT64) = `t3`.`key`
      AND `t5`.`key0` >= `t3`.`low`
      AND `t5`.`key0` <= `t3`.`high`
  ) AS `t8`
  WHERE
    `t8`.`who` IS NOT NULL
), `discreet_group_rows` AS (
  SELECT
    *
  FROM (
    SELECT
      `t7`.`who`,
      `t3`.`number` AS `grp`
    FROM (
      SELECT
        CAST(`t2`.`customer` AS BYTES) AS `who`,
        COALESCE(
          (
            CAST(NULL AS INT64) + 719163
          ) * 172800,
          (
            (
              UNIX_SECONDS(`t2`.`moment`) + 62135683200
            ) * 2
          ) + 1
        ) AS `key0`
      FROM `mart`.`sales` AS `t2`
    ) AS `t7`
    INNER JOIN (
      SELECT
        CAST(`key` AS INT64) AS `key`,
        CAST(`low` AS INT64) AS `low`,
        CAST(`high` AS INT64) AS `high`,
        CAST(`number` AS INT64) AS `number`
      FROM UNNEST([
        STRUCT(739698 AS `key`, 127819814400 AS `low`, 127819814400 AS `high`, 0 AS `number`),
        STRUCT(739699 AS `key`, 127819987200 AS `low`, 127819987200 AS `high`, 0 AS `number`),
        STRUCT(739700 AS `key`, 127820160000 AS `low`, 127820160000 AS `high`, 0 AS `number`),
        STRUCT(739701 AS `key`, 127820332800 AS `low`, 127820332800 AS `high`, 0 AS `number`),
        STRUCT(739702 AS `key`, 127820505600 AS `low`, 127820505600 AS `high`, 0 AS `number`),
        STRUCT(739703 AS `key`, 127820678400 AS `low`, 127820678400 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127820851200 AS `low`, 127820851200 AS `high`, 0 AS `number`),
        STRUCT(739705 AS `key`, 127821024000 AS `low`, 127821024000 AS `high`, 1 AS `number`),
        STRUCT(739706 AS `key`, 127821196800 AS `low`, 127821196800 AS `high`, 1 AS `number`),
        STRUCT(739707 AS `key`, 127821369600 AS `low`, 127821369600 AS `high`, 1 AS `number`),
        STRUCT(739708 AS `key`, 127821542400 AS `low`, 127821542400 AS `high`, 1 AS `number`),
        STRUCT(739709 AS `key`, 127821715200 AS `low`, 127821715200 AS `high`, 1 AS `number`),
        STRUCT(739710 AS `key`, 127821888000 AS `low`, 127821888000 AS `high`, 1 AS `number`),
        STRUCT(739711 AS `key`, 127822060800 AS `low`, 127822060800 AS `high`, 1 AS `number`),
        STRUCT(739697 AS `key`, 127819807201 AS `low`, 127819814399 AS `high`, 0 AS `number`),
        STRUCT(739698 AS `key`, 127819814401 AS `low`, 127819987199 AS `high`, 0 AS `number`),
        STRUCT(739699 AS `key`, 127819987201 AS `low`, 127820159999 AS `high`, 0 AS `number`),
        STRUCT(739700 AS `key`, 127820160001 AS `low`, 127820332799 AS `high`, 0 AS `number`),
        STRUCT(739701 AS `key`, 127820332801 AS `low`, 127820505599 AS `high`, 0 AS `number`),
        STRUCT(739702 AS `key`, 127820505601 AS `low`, 127820678399 AS `high`, 0 AS `number`),
        STRUCT(739703 AS `key`, 127820678401 AS `low`, 127820851199 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127820851201 AS `low`, 127820858399 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127820858401 AS `low`, 127821009599 AS `high`, 0 AS `number`),
        STRUCT(739704 AS `key`, 127821009601 AS `low`, 127821023999 AS `high`, 1 AS `number`),
        STRUCT(739705 AS `key`, 127821024001 AS `low`, 127821196799 AS `high`, 1 AS `number`),
        STRUCT(739706 AS `key`, 127821196801 AS `low`, 127821369599 AS `high`, 1 AS `number`),
        STRUCT(739707 AS `key`, 127821369601 AS `low`, 127821542399 AS `high`, 1 AS `number`),
        STRUCT(739708 AS `key`, 127821542401 AS `low`, 127821715199 AS `high`, 1 AS `number`),
        STRUCT(739709 AS `key`, 127821715201 AS `low`, 127821887999 AS `high`, 1 AS `number`),
        STRUCT(739710 AS `key`, 127821888001 AS `low`, 127822060799 AS `high`, 1 AS `number`),
        STRUCT(739711 AS `key`, 127822060801 AS `low`, 127822219199 AS `high`, 1 AS `number`)
      ]) AS listed
    ) AS `t3`
      ON CAST(FLOOR(ieee_divide(`t7`.`key0`, 172800)) AS INT64) = `t3`.`key`
      AND `t7`.`key0` >= `t3`.`low`
      AND `t7`.`key0` <= `t3`.`high`
  ) AS `t9`
  WHERE
    `t9`.`who` IS NOT NULL
), `discreet_groups` AS (
  SELECT
    `t17`.`who`,
    3 - (
      `t17`.`place` & 3
    ) AS `grp`
  FROM (
    SELECT
      `t16`.`who`,
      MAX(`t16`.`place`) AS `place`
    FROM (
      SELECT
        `t15`.`who`,
        (
          IF(`t15`.`number` IS NULL, `t15`.`number`, LEAST(1152921504606846976, `t15`.`number`)) * 4
        ) + (
          3 - `t15`.`grp`
        ) AS `place`
      FROM (
        SELECT
          `t14`.`who`,
          `t14`.`grp`,
          COUNT(*) AS `number`
        FROM `discreet_group_rows` AS `t14`
        GROUP BY
          1,
          2
      ) AS `t15`
    ) AS `t16`
    GROUP BY
      1
  ) AS `t17`
)
SELECT
  *
FROM (
  SELECT
    `t21`.`grp`,
    `t21`.`item`,
    COUNT(DISTINCT `t21`.`who`) AS `score`
  FROM (
    SELECT
      `t13`.`who`,
      `t13`.`item`,
      `t13`.`grp`
    FROM `discreet_rows` AS `t13`
    INNER JOIN `discreet_groups` AS `t20`
      ON `t13`.`who` = `t20`.`who` AND `t13`.`grp` = `t20`.`grp`
  ) AS `t21`
  GROUP BY
    1,
    2
) AS `t22`
WHERE
  `t22`.`item` BETWEEN 0 AND 99
