WITH `discreet_rows` AS (
  SELECT
    *
  FROM (
    SELECT
      `t7`.`who`,
      `t7`.`item`,
      `t5`.`number` AS `grp`
    FROM (
      SELECT
        CAST(`t1`.`customer` AS BYTES) AS `who`,
        CAST(`t1`.`product` AS BYTES) AS `item`,
        CAST(`t1`.`country` AS BYTES) AS `key0`
      FROM `mart`.`sales` AS `t1`
    ) AS `t7`
    INNER JOIN (
      SELECT
        CAST(`key` AS STRING) AS `key`,
        CAST(`number` AS INT64) AS `number`
      FROM UNNEST([STRUCT('DE' AS `key`, 0 AS `number`), STRUCT('FR' AS `key`, 1 AS `number`)]) AS listed
    ) AS `t5`
      ON `t7`.`key0` = CAST(`t5`.`key` AS BYTES)
  ) AS `t10`
  WHERE
    `t10`.`who` IS NOT NULL
), `discreet_group_rows` AS (
  SELECT
    *
  FROM (
    SELECT
      `t9`.`who`,
      `t5`.`number` AS `grp`
    FROM (
      SELECT
        CAST(`t4`.`customer` AS BYTES) AS `who`,
        CAST(`t4`.`country` AS BYTES) AS `key0`
      FROM `mart`.`sales` AS `t4`
    ) AS `t9`
    INNER JOIN (
      SELECT
        CAST(`key` AS STRING) AS `key`,
        CAST(`number` AS INT64) AS `number`
      FROM UNNEST([STRUCT('DE' AS `key`, 0 AS `number`), STRUCT('FR' AS `key`, 1 AS `number`)]) AS listed
    ) AS `t5`
      ON `t9`.`key0` = CAST(`t5`.`key` AS BYTES)
  ) AS `t11`
  WHERE
    `t11`.`who` IS NOT NULL
), `discreet_groups` AS (
  SELECT
    `t19`.`who`,
    `t19`.`grp`
  FROM (
    SELECT
      `t18`.`who`,
      `t18`.`grp`,
      `t18`.`hash`,
      ROW_NUMBER() OVER (PARTITION BY `t18`.`who` ORDER BY `t18`.`hash` ASC, `t18`.`grp` ASC) - 1 AS `position`
    FROM (
      SELECT
        `t17`.`who`,
        `t17`.`grp`,
        CAST(TO_HEX(
          MD5(
            CAST(CONCAT(CONCAT(TO_HEX(MD5(`t17`.`who`)), ':'), CAST(`t17`.`grp` AS STRING)) AS BYTES)
          )
        ) AS BYTES) AS `hash`
      FROM (
        SELECT DISTINCT
          *
        FROM `discreet_group_rows` AS `t16`
      ) AS `t17`
    ) AS `t18`
  ) AS `t19`
  WHERE
    `t19`.`position` < 1
)
SELECT
  `t26`.`grp`,
  `t26`.`ordinal` AS `item`,
  `t26`.`score`
FROM (
  SELECT
    `t25`.`item`,
    `t3`.`ordinal`,
    `t25`.`grp`,
    `t25`.`score`
  FROM (
    SELECT
      `t23`.`grp`,
      `t23`.`item`,
      COUNT(DISTINCT `t23`.`who`) AS `score`
    FROM (
      SELECT
        `t15`.`who`,
        `t15`.`item`,
        `t15`.`grp`
      FROM `discreet_rows` AS `t15`
      INNER JOIN `discreet_groups` AS `t22`
        ON `t15`.`who` = `t22`.`who` AND `t15`.`grp` = `t22`.`grp`
    ) AS `t23`
    GROUP BY
      1,
      2
  ) AS `t25`
  INNER JOIN (
    SELECT
      CAST(`item` AS STRING) AS `item`,
      CAST(`ordinal` AS INT64) AS `ordinal`
    FROM UNNEST([
      STRUCT('it\'s \\ 😀' AS `item`, 0 AS `ordinal`),
      STRUCT('rum ' AS `item`, 1 AS `ordinal`),
      STRUCT('tea' AS `item`, 2 AS `ordinal`)
    ]) AS listed
  ) AS `t3`
    ON `t25`.`item` = CAST(`t3`.`item` AS BYTES)
) AS `t26`
