SELECT
  `t3`.`item`,
  COALESCE(`t13`.`score`, 0) AS `score`
FROM (
  SELECT
    CAST(`item` AS STRING) AS `item`
  FROM VALUES
    ('tea'),
    ('it\'s \\ 😀'),
    ('rum ') AS listed(`item`)
) AS `t3`
LEFT OUTER JOIN (
  SELECT
    `t11`.`item`,
    COUNT(*) AS `score`
  FROM (
    SELECT
      *
    FROM (
      SELECT
        `t9`.`item`,
        `t9`.`ordinal`,
        `t9`.`who`,
        `t9`.`hash`,
        ROW_NUMBER() OVER (
          PARTITION BY `t9`.`who`
          ORDER BY `t9`.`hash` ASC NULLS LAST, `t9`.`ordinal` ASC NULLS LAST
        ) - 1 AS `position`
      FROM (
        SELECT
          `t8`.`item`,
          `t8`.`ordinal`,
          `t8`.`who`,
          (
            (
              (
                (
                  (
                    SUM(CAST(`t8`.`ordinal` AS INT)) OVER (PARTITION BY `t8`.`who` ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) & 2147483647
                  ) * 1327217885
                ) & 2147483647
              ) | 1
            ) * (
              `t8`.`ordinal` + 1
            )
          ) & 2147483647 AS `hash`
        FROM (
          SELECT DISTINCT
            *
          FROM (
            SELECT
              `t6`.`item`,
              `t4`.`ordinal`,
              `t6`.`who`
            FROM (
              SELECT
                CAST(`t1`.`customer` AS BINARY) AS `who`,
                CAST(`t1`.`product` AS BINARY) AS `item`
              FROM `mart`.`sales` AS `t1`
              WHERE
                CAST(`t1`.`customer` AS BINARY) IS NOT NULL
            ) AS `t6`
            INNER JOIN (
              SELECT
                CAST(`item` AS STRING) AS `item`,
                CAST(`ordinal` AS BIGINT) AS `ordinal`
              FROM VALUES
                ('it\'s \\ 😀', 0),
                ('rum ', 1),
                ('tea', 2) AS listed(`item`, `ordinal`)
            ) AS `t4`
              ON `t6`.`item` = CAST(`t4`.`item` AS BINARY)
          ) AS `t7`
        ) AS `t8`
      ) AS `t9`
    ) AS `t10`
    WHERE
      `t10`.`position` < 2
  ) AS `t11`
  GROUP BY
    1
) AS `t13`
  ON CAST(`t3`.`item` AS BINARY) = `t13`.`item`
